"""Allow one process at a time to make, switch or remove the vectors of whole models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import Error, connection

# Any number that nothing else uses.
LOCK = 0x4E3BED


class ReembedRunningError(Exception):
    """Another process is already making, switching or removing vectors."""

    def __init__(self) -> None:
        super().__init__("Another memories_reembed is at work in this database.")


@contextmanager
def reembed_lock() -> Iterator[None]:
    """Hold the lock until the block ends. Raises ReembedRunningError.

    The database releases the lock when the process dies.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            raise ReembedRunningError
    try:
        yield
    finally:
        # A lost connection has released its lock.
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
