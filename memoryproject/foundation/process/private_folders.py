"""Make folders that only their owner can open, and let what they list survive a power cut."""

from __future__ import annotations

import os
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


def folder_sync(path: Path) -> None:
    """Write to the disk which files the folder has. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
