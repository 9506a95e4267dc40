"""Limit the calls of each kind that a caller may make in a minute."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from django.conf import settings
from django.db import connection
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memoryproject.foundation.rest_kit.authentication import caller_of
from memoryproject.foundation.rest_kit.errors import Unavailable
from memoryproject.foundation.rest_kit.models import CallCount

MINUTE = 60
KINDS = ("read", "write", "forget", "chat", "bulk")
BY_METHOD = {"GET": "read", "HEAD": "read", "OPTIONS": "read", "DELETE": "forget"}

# The tolerance of limits that docs/api.md states follows from it.
PORTIONS = 50

# The headers of every response to a caller whose calls are limited, and what they say.
LIMIT, LEFT, RESET = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
HEADERS = {
    LIMIT: "How many calls of this kind a minute has.",
    LEFT: "How many of them are left, as far as this process of the web server knows.",
    RESET: "In so many seconds the next minute begins.",
}

_ADD = """
INSERT INTO api_callcount (caller, kind, minute, calls) VALUES (%s, %s, %s, %s)
ON CONFLICT (caller, kind, minute) DO UPDATE SET calls = api_callcount.calls + excluded.calls
RETURNING calls
"""

# The caller's key and the kind of call.
Key: TypeAlias = tuple[str, str]


@dataclass
class _Calls:
    """The calls of one caller and kind in this minute.

    ``written``: those of all processes when this one last wrote; ``unwritten``: those of this
    process since.
    """

    written: int = 0
    unwritten: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class CallCounts:
    """The calls that this process knows of in the current minute.

    A process counts in memory and adds its calls to the table in portions, of which
    ``PORTIONS`` make up the limit. It never refuses a call below the limit. Above the limit, each
    process accepts at most one call less than a portion. Limits below 2 * ``PORTIONS`` are exact:
    there a portion is one call.

    All methods may be called by several threads.
    """

    _minute: int = 0
    _calls: dict[Key, _Calls] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def accept(self, key: Key, *, rate: int, minute: int) -> bool:
        """Count a call, and return whether it is within the limit. ``minute``: since 1970."""
        with self._lock:
            # A call may be late by a minute; a clock that is set back starts again.
            if not self._minute - 1 <= minute <= self._minute:
                self._minute, self._calls = minute, {}
            minute, calls = self._minute, self._calls.setdefault(key, _Calls())
        with calls.lock:
            if calls.written + calls.unwritten >= rate:
                # Refused calls change nothing, so no process has to know of them.
                return False
            calls.unwritten += 1
            if calls.unwritten >= max(rate // PORTIONS, 1):
                calls.written = _add(key, minute, calls.unwritten)
                calls.unwritten = 0
            return calls.written <= rate

    def left(self, key: Key, *, rate: int) -> int:
        """Return how many calls this process believes to be left in the current minute."""
        with self._lock:
            calls = self._calls.get(key, _Calls())
        with calls.lock:
            return max(rate - calls.written - calls.unwritten, 0)


def _add(key: Key, minute: int, calls: int) -> int:
    """Add calls to the table; return those of all processes."""
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [*key, minute, calls])
        return int(cursor.fetchone()[0])


_counts = CallCounts()


class CallThrottle(BaseThrottle):
    """Count by caller, kind of call and minute, over all processes: see CallCounts."""

    def __init__(self) -> None:
        self._left = float(MINUTE)
        self._headers: dict[str, str] = {}

    def allow_request(self, request: Request, view: Any) -> bool:
        caller = caller_of(request)
        kind = kind_of(str(request.method), view)
        rate = rate_of(kind)
        if caller is None or not rate:
            return True
        minute, second = divmod(time.time(), MINUTE)
        self._left = MINUTE - second
        key = (caller.key, kind)
        is_within = _counts.accept(key, rate=rate, minute=int(minute))
        numbers = (rate, _counts.left(key, rate=rate), max(math.ceil(self._left), 1))
        self._headers = dict(zip(HEADERS, map(str, numbers), strict=True))
        return is_within

    def headers(self) -> dict[str, str]:
        """Return what the response says of the limit; nothing where there is none."""
        return self._headers

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return self._left


def kind_of(method: str, view: Any) -> str:
    kinds: dict[str, str] = getattr(view, "kinds", {})
    return kinds.get(method) or BY_METHOD.get(method, "write")


def rate_of(kind: str) -> int:
    """Return the allowed calls a minute; 0 for no limit."""
    return int(getattr(settings, f"API_RATE_{kind.upper()}"))


def counts_drop() -> int:
    """Delete the counts of past minutes; return the number of rows."""
    now = int(time.time() // MINUTE)
    return CallCount.objects.filter(minute__lt=now - 1).delete()[0]


# A limit on the calls that wait for something slow, such as a chat model.


# For each process. It must be smaller than the number of its threads: memoryproject/programs.py.
MAX_WAITING_CALLS = 14

Item = TypeVar("Item")


class TooManyWaiting(Unavailable):
    default_code = "overloaded"
    default_detail = (
        "Too many calls wait for an answer. Nothing was done; try again, with the same key."
    )
    wait = 5


class WaitingCalls:
    """Places for calls that wait. All methods may be called by several threads."""

    def __init__(self, places: int) -> None:
        self._places = threading.BoundedSemaphore(places)

    def take_place(self) -> None:
        """Take a place, which ``leave_place`` gives back. Raises TooManyWaiting."""
        if not self._places.acquire(blocking=False):
            raise TooManyWaiting

    def leave_place(self) -> None:
        self._places.release()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place during the block. Raises TooManyWaiting."""
        self.take_place()
        try:
            yield
        finally:
            self.leave_place()


class PlacedIterator(Iterator[Item]):
    """Iterates over ``items`` and leaves the place at the end, or when it is closed."""

    def __init__(self, items: Iterator[Item], calls: WaitingCalls) -> None:
        self._items = items
        self._calls: WaitingCalls | None = calls

    def __next__(self) -> Item:
        try:
            return next(self._items)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the place. A generator that never started doesn't run its ``finally``."""
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.leave_place()
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


waiting_calls = WaitingCalls(MAX_WAITING_CALLS)
