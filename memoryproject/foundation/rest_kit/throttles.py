"""Limit the calls of each kind that a caller may make in a minute."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.db import connection
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memoryproject.foundation.rest_kit.callers import caller_of
from memoryproject.foundation.rest_kit.models import CallCount

MINUTE = 60
KINDS = ("read", "write", "forget", "chat", "bulk")
BY_METHOD = {"GET": "read", "HEAD": "read", "OPTIONS": "read", "DELETE": "forget"}

_COUNT = """
INSERT INTO api_callcount (caller, kind, minute, calls) VALUES (%s, %s, %s, 1)
ON CONFLICT (caller, kind, minute) DO UPDATE SET calls = api_callcount.calls + 1
RETURNING calls
"""


class CallThrottle(BaseThrottle):
    """Count by caller, kind of call and minute.

    One statement counts, so the count is correct for any number of processes.
    """

    def __init__(self) -> None:
        self._left = float(MINUTE)

    def allow_request(self, request: Request, view: Any) -> bool:
        caller = caller_of(request)
        kind = kind_of(str(request.method), view)
        rate = rate_of(kind)
        if caller is None or not rate:
            return True
        minute, second = divmod(time.time(), MINUTE)
        self._left = MINUTE - second
        with connection.cursor() as cursor:
            cursor.execute(_COUNT, [caller.key, kind, int(minute)])
            return bool(cursor.fetchone()[0] <= rate)

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
