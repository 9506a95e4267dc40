"""Keeps what is forgotten from coming back by a worker that had read it before.

Whoever stores something that was made of memory takes the mark of the last forgetting before
reading, and shows it when storing: was anything forgotten in between, it is made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import Error, connection

from sessions_app.models import ForgetReceipt

# Any number that no other advisory lock uses.
_LOCK = 0x0F04_6E77


class ForgottenMeanwhileError(Exception):
    """Something was forgotten since the mark was taken: read again."""


def forgetting_mark() -> int:
    """Which forgetting was the last one."""
    last = ForgetReceipt.objects.order_by("-id").values_list("id", flat=True).first()
    return last or 0


def forgetting_wait() -> None:
    """Wait for a forgetting that is in progress, and let none begin until the transaction
    ends. The first lock of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])


def forgetting_check(mark: int) -> None:
    """As ``forgetting_wait``, and make sure that nothing was forgotten since ``mark``. Raises
    ForgottenMeanwhileError."""
    forgetting_wait()
    if forgetting_mark() != mark:
        raise ForgottenMeanwhileError("Something was forgotten meanwhile: it is made again.")


def forgetting_begin() -> None:
    """Wait for those who are storing, and let nobody store until the transaction ends. The
    first lock of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


@contextmanager
def forgetting_held() -> Iterator[None]:
    """As ``forgetting_wait``, over several transactions: until the block ends. For what is
    written to files beside the database. Call it outside of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock_shared(%s)", [_LOCK])
    try:
        yield
    finally:
        # A connection that is lost has given up its lock.
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_shared(%s)", [_LOCK])
