"""One deadline over all the calls of outside services that one answer makes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ends_at: ContextVar[float | None] = ContextVar("ends_at", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Let calls of outside services within the block take at most ``seconds`` together.

    A deadline that is set already and ends earlier stays in force.
    """
    left = time_left()
    token = _ends_at.set(time.monotonic() + (seconds if left is None else min(seconds, left)))
    try:
        yield
    finally:
        _ends_at.reset(token)


def time_left() -> float | None:
    """Return the seconds until the deadline, at least 0; None without a deadline."""
    ends_at = _ends_at.get()
    return None if ends_at is None else max(ends_at - time.monotonic(), 0.0)
