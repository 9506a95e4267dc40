"""Folders that only their owner can open."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700


def folder_make(path: Path) -> None:
    """Create a folder and its missing parents, each with mode 700, whatever the umask.

    Existing folders keep their modes. Raises OSError.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir(mode=FOLDER_MODE)
