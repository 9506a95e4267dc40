"""Reads the documents and what they speak of."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(PROJECT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(PROJECT.glob("docs/*.md")),
]
OUR_APPS = (
    "memoryproject",
    "memoryproject.foundation.audit",
    "memoryproject.staff_site",
    "sessions_app",
    "memories_app",
    "cards_app",
)
# An assignment at the beginning of a line, perhaps commented out.
EXAMPLE = re.compile(r"^#?\s?([A-Z][A-Z0-9_]+)=(.*)$", re.MULTILINE)


def read(name: str) -> str:
    return (PROJECT / name).read_text(encoding="utf-8")


def tracked_files() -> list[Path]:
    """The files of the project, as git knows them; empty outside a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        check=False,
    )
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    return [PROJECT / name for name in names if name and (PROJECT / name).is_file()]
