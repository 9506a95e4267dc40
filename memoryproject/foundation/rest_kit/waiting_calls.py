"""A limit on the calls that wait for something slow, such as a chat model.

Each holds a thread of the web server. Without a limit they could hold all threads, and staff's
pages and all other calls would wait with them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from memoryproject.foundation.rest_kit.errors import Unavailable

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
