"""Whether the disk is full."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from django.utils.translation import gettext_noop
from psycopg.errors import DiskFull, OperationalError

# What is said then.
STORAGE_FULL = gettext_noop(
    "The disk is full: nothing can be stored. Free some space; see docs/operations.md, "
    "“When the disk is full”. Nothing that is stored was harmed."
)
# Below so little PostgreSQL can't write its log any more, and may stop.
MIN_FREE_BYTES = 16 * 1024 * 1024


def is_disk_full(error: BaseException) -> bool:
    """Whether this error, or one that led to it, says that there is no space left."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, DiskFull):
            return True
        if isinstance(current, OSError) and current.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        current = current.__cause__ or current.__context__
    return False


def is_caused_by_full_disk(error: BaseException, data_dir: Path) -> bool:
    """The same, and also where a database in ``data_dir`` is gone because it can't write."""
    if is_disk_full(error):
        return True
    gone = isinstance(error.__cause__, OperationalError)
    return gone and free_bytes(data_dir) < MIN_FREE_BYTES


def free_bytes(folder: Path) -> int:
    """What is left for writing; as good as endless where nobody can tell."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 2**63
