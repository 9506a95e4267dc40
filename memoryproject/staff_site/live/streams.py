"""The open streams of one process: all of them hear of what one question to the database finds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import Error

logger = logging.getLogger(__name__)

ASK_SECONDS = 1.0


class FullError(Exception):
    """The limit of streams is reached."""


@dataclass(frozen=True)
class Limits:
    """The limits on the number of streams.

    ``of_session``: a browser opens six connections to a server and needs some for its pages.
    """

    of_session: int = 4
    of_account: int = 20
    in_all: int = 500


@dataclass(frozen=True)
class Listener:
    """The reader of a stream: the key of a session, and the account that is logged in by it."""

    session: str
    account: int


@dataclass(eq=False)
class Stream:
    """One open stream. News that come before the last ones were sent are sent together."""

    listener: Listener
    is_over: bool = False
    has_news: bool = False
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        self.has_news = True
        self._woken.set()

    def end(self) -> None:
        self.is_over = True
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Wait until there is news or the stream is over, but not longer than this."""
        try:
            await asyncio.wait_for(self._woken.wait(), seconds)
        except asyncio.TimeoutError:
            return
        self._woken.clear()

    def take_news(self) -> bool:
        """Return whether there was news since the last call."""
        had, self.has_news = self.has_news, False
        return had


class Streams:
    """All open streams. While there are any, ``ask`` is called once a second.

    ``ask`` returns what is compared with its last result; it may raise Django's database errors.
    A stream begins with news, as soon as it is known with what the next result is compared: a page
    that asks then misses nothing.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[object]],
        *,
        limits: Limits | None = None,
        every: float = ASK_SECONDS,
    ) -> None:
        self._ask = ask
        self._limits = limits or Limits()
        self._every = every
        self._open: set[Stream] = set()
        self._asking: asyncio.Task[None] | None = None
        # None: nothing was asked since there were no streams.
        self._known: object = None

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._open)

    @contextmanager
    def opened(self, listener: Listener) -> Iterator[Stream]:
        """Yield a stream, which hears of news until the block ends. Raises FullError."""
        others = [stream.listener for stream in self._open]
        of_account = [other for other in others if other.account == listener.account]
        of_session = [other for other in of_account if other.session == listener.session]
        if (
            len(others) >= self._limits.in_all
            or len(of_account) >= self._limits.of_account
            or len(of_session) >= self._limits.of_session
        ):
            raise FullError
        stream = Stream(listener)
        self._open.add(stream)
        if self._asking is None:
            self._asking = asyncio.create_task(self._look())
        elif self._known is not None:
            stream.tell()
        try:
            yield stream
        finally:
            self._open.discard(stream)
            if not self._open and self._asking is not None:
                self._asking.cancel()
                self._asking = self._known = None

    def end(self) -> None:
        """End all streams."""
        for stream in self:
            stream.end()

    async def _look(self) -> None:
        is_failing = False
        while True:
            try:
                found = await self._ask()
            except Error:
                if not is_failing:
                    logger.warning("The database can't be asked for news.", exc_info=True)
                is_failing = True
            else:
                is_failing = False
                if found != self._known:
                    self._known = found
                    for stream in self:
                        stream.tell()
            await asyncio.sleep(self._every)
