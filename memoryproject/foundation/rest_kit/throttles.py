"""Limit the calls of each kind that a caller may make in a minute."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memoryproject.foundation.rest_kit import authentication, errors
from memoryproject.foundation.rest_kit.models import CallCount

MINUTE = 60
KINDS = ("read", "write", "forget", "chat", "bulk")
BY_METHOD = {"GET": "read", "HEAD": "read", "OPTIONS": "read", "DELETE": "forget"}

# The headers of every response to a caller whose calls are limited, and what they say.
LIMIT, LEFT, RESET = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"
HEADERS = {
    LIMIT: "How many calls of this kind a minute has.",
    LEFT: "How many of them are left.",
    RESET: "In so many seconds the next minute begins.",
}

_COUNT = """
INSERT INTO api_callcount (caller, kind, minute, calls) VALUES (%s, %s, %s, 1)
ON CONFLICT (caller, kind, minute) DO UPDATE SET calls = api_callcount.calls + 1
RETURNING calls
"""


def count_call(caller: str, kind: str, minute: int) -> int:
    """Count a call; return how many the caller has made in the minute, since 1970."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [caller, kind, minute])
        return int(cursor.fetchone()[0])


class CallThrottle(BaseThrottle):
    """Count by caller, kind of call and minute, over all processes."""

    def __init__(self) -> None:
        self._left = float(MINUTE)
        self._headers: dict[str, str] = {}

    def allow_request(self, request: Request, view: Any) -> bool:
        caller = authentication.caller_of(request)
        kind = kind_of(str(request.method), view)
        rate = rate_of(kind)
        if caller is None or not rate:
            return True
        minute, second = divmod(time.time(), MINUTE)
        self._left = MINUTE - second
        calls = count_call(caller.key, kind, int(minute))
        numbers = (rate, max(rate - calls, 0), max(math.ceil(self._left), 1))
        self._headers = dict(zip(HEADERS, map(str, numbers), strict=True))
        return calls <= rate

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


class TooManyWaiting(errors.Unavailable):
    default_code = "overloaded"
    default_detail = (
        "Too many calls wait for an answer. Nothing was done; try again, with the same key."
    )
    wait = 5


class WaitingCalls:
    """Places for calls that wait. All methods may be called by several threads."""

    def __init__(self, places: int) -> None:
        self._places = threading.BoundedSemaphore(places)

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place during the block. Raises TooManyWaiting."""
        if not self._places.acquire(blocking=False):
            raise TooManyWaiting
        try:
            yield
        finally:
            self._places.release()


class PlacedResponse(StreamingHttpResponse):
    """Holds a place until it is closed, as web servers close each response, read or not."""

    def __init__(self, place: ExitStack, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._place = place

    def close(self) -> None:
        super().close()
        self._place.close()


waiting_calls = WaitingCalls(MAX_WAITING_CALLS)
