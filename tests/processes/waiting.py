"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 60.0


def wait_until(condition: Callable[[], T], what: str, *, seconds: float = PATIENCE_SECONDS) -> T:
    """The condition's first true value; fails the test, saying what it waited for."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} seconds in vain: {what}"
        time.sleep(0.02)
    return found
