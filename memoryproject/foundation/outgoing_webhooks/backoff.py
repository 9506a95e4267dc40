"""Calculate when a failed delivery is retried, and how long a failing endpoint is paused."""

from __future__ import annotations

from datetime import timedelta

# As Standard Webhooks suggests. The first attempt is immediate.
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
# So that deliveries that failed together aren't retried together.
JITTER = 0.2

FIRST_PAUSE = timedelta(seconds=5)
MAX_PAUSE = timedelta(minutes=5)
# A receiver may ask for a wait up to this length.
MAX_RETRY_AFTER = timedelta(hours=24)


def next_wait(*, attempts: int, luck: float, retry_after: float | None = None) -> timedelta | None:
    """Return the wait after this many attempts (1 or more); None after the last one.

    ``luck`` is from 0 to 1. The wait is never shorter than the receiver asked for (seconds).
    """
    if attempts > len(WAITS):
        return None
    return max(WAITS[attempts - 1] * (1 + JITTER * luck), _requested_wait(retry_after))


def pause(*, failures: int, retry_after: float | None = None) -> timedelta:
    """Return how long an endpoint gets nothing after this many failures in a row.

    The pause grows each time, so that an endpoint that is down costs one attempt, not one attempt
    for each delivery.
    """
    own = min(FIRST_PAUSE * 2 ** min(failures - 1, 20), MAX_PAUSE)
    return max(own, _requested_wait(retry_after))


def _requested_wait(retry_after: float | None) -> timedelta:
    return min(timedelta(seconds=min(retry_after or 0.0, 10**6)), MAX_RETRY_AFTER)
