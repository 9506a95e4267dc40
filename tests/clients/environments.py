"""The environments of the clients, which are not the server's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.processes.command_server import REPOSITORY

CLIENTS = REPOSITORY / "clients"


def require(path: Path, target: str) -> Path:
    """Return what `make target` makes. Where it is missing the test is skipped, in CI it fails."""
    if not path.exists():
        reason = f"{path.relative_to(REPOSITORY)} is missing: make {target}"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
