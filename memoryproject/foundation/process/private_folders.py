"""Folders that nobody else may look into."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700


def folder_make(path: Path) -> None:
    """Make a folder and what is missing above it, each with mode 700, whatever the umask.
    Those that are there keep their modes. Raises OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir(mode=FOLDER_MODE)
