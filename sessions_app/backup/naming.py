"""Give a finished file its final name. Independent of Django."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from memoryproject.foundation.process.private_folders import folder_sync

# The errors of file systems without hard links: FAT and exFAT, some network folders.
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Link = Callable[[Path, Path], None]


def name_file(temporary: Path, path: Path, *, link: Link = os.link) -> None:
    """Move the file ``temporary`` to ``path``.

    Raises FileExistsError if ``path`` exists, and other OSError; then ``path`` is unchanged.
    """
    try:
        # Unlike a rename, a link never replaces a file that was created meanwhile.
        link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _rename(temporary, path)
    folder_sync(path.parent)


def _rename(temporary: Path, path: Path) -> None:
    """Reserve the name first, so that only this program's own file is replaced."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.replace(temporary, path)
    except OSError:
        path.unlink()
        raise
