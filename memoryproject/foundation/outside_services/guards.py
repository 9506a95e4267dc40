"""Guards: what the clients of outside services call them through.

Importing this needs no models of Django.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

# The weight of a timeout; a failure that is answered at once weighs 1.
TIMEOUT_WEIGHT = 4
# A refused token or account: the second in a row is no accident.
REFUSED_WEIGHT = 10
# Five timeouts, or twenty other failures (a call makes up to four attempts).
SICK_AT = 20
PAUSE_SECONDS = 30.0


class ServicePausedError(Exception):
    """The service didn't answer lately and isn't called now."""


class SickError(Protocol):
    """An error with its weight as a sign of a sick service.

    ``sickness`` is 0 where the service answered as it should and the request is to blame.
    ``sickness_text`` says what happened, without words of the server.
    """

    sickness: int

    @property
    def sickness_text(self) -> str: ...


class Guard(Protocol):
    """A guard, through which a client calls its service."""

    def call(self, work: Callable[[], T]) -> T:
        """Return the value of ``work``. Raises ServicePausedError, and what ``work`` raises."""


class Unguarded:
    """A guard that only runs the work."""

    def call(self, work: Callable[[], T]) -> T:
        return work()


def no_guard(_number: str) -> Guard:
    """Return a guard that only runs the work, for callers that have a guard for each number."""
    return Unguarded()


# One deadline over all the calls of outside services that one answer makes.


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
