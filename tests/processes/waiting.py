"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 120.0


def wait_until(
    condition: Callable[[], T],
    what: str,
    *,
    seconds: float = PATIENCE_SECONDS,
    longest_pause: float = 0.1,
) -> T:
    """The condition's first true value; fails the test, saying what it waited for.

    The longer it takes, the longer are the pauses: looking takes time from what is waited for.
    """
    pause = min(0.01, longest_pause)
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} seconds in vain: {what}"
        time.sleep(pause)
        pause = min(pause * 1.2, longest_pause)
    return found
