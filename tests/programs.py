"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def python(
    *arguments: str, folder: Path | None = None, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it in the project. ``folder``: where it keeps data and logs of its own."""
    own = {}
    if folder is not None:
        own = {"DATA_DIR": str(folder / "data"), "LOG_DIR": str(folder / "logs")}
    settings = {"DJANGO_SETTINGS_MODULE": "memoryproject.settings", **own}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env={**os.environ, **settings, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=check,
    )
