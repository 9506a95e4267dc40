"""Make folders and files that only their owner can open, and let them survive a power cut."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


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


def file_make(path: Path, contents: bytes) -> None:
    """Write a file that doesn't exist yet, with mode 600, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(descriptor)
