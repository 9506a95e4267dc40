"""Gives a finished file its name. Knows no Django."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

# What file systems without hard links answer: FAT and exFAT, some network folders.
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Link = Callable[[Path, Path], None]


def name_file(temporary: Path, path: Path, *, link: Link = os.link) -> None:
    """Let the file ``temporary`` be at ``path`` for good. Raises FileExistsError where one is
    there, and other OSError; then ``path`` is as it was."""
    try:
        # Unlike a rename, a link never replaces a file that came to be there meanwhile.
        link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _rename(temporary, path)
    _sync_folder(path.parent)


def _rename(temporary: Path, path: Path) -> None:
    """Take the name first, so that only a file of our own is replaced."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.replace(temporary, path)
    except OSError:
        path.unlink()
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
