"""When a delivery that failed is tried again, and how long an endpoint is left alone."""

from __future__ import annotations

from datetime import timedelta

# As Standard Webhooks suggests. The first try is at once.
WAITS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=20),
    timedelta(hours=24),
)
# So that what failed together isn't tried again together.
JITTER = 0.2

FIRST_PAUSE = timedelta(seconds=5)
MAX_PAUSE = timedelta(minutes=5)
# A receiver may ask for so much, and no more.
MAX_RETRY_AFTER = timedelta(hours=24)


def next_wait(*, attempts: int, luck: float, retry_after: float | None = None) -> timedelta | None:
    """How long to wait after so many attempts (1 or more); None: it was the last one.
    ``luck`` is from 0 to 1. Never shorter than what the receiver asked for (seconds)."""
    if attempts > len(WAITS):
        return None
    return max(WAITS[attempts - 1] * (1 + JITTER * luck), _asked(retry_after))


def pause(*, failures: int, retry_after: float | None = None) -> timedelta:
    """How long an endpoint that failed so many times in a row gets nothing at all: longer each
    time, so that one that is down costs one try, not one for each delivery."""
    own = min(FIRST_PAUSE * 2 ** min(failures - 1, 20), MAX_PAUSE)
    return max(own, _asked(retry_after))


def _asked(retry_after: float | None) -> timedelta:
    return min(timedelta(seconds=min(retry_after or 0.0, 10**6)), MAX_RETRY_AFTER)
