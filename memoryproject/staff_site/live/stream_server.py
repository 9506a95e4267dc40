"""The program `live`: keeps the streams of open pages, in one thread.

A stream says only that something changed. The page then asks its own address, which knows who may
see what.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import uvicorn
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, connection, connections
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.staff_site.accounts.sessions import listener_of
from sessions_app.models import MediaFile, Message, Turn

PATH = "/admin/live/"
# Proxies end connections on which nothing happens, often after a minute.
HEARTBEAT_SECONDS = 15
# The longest time that the database may take to say who listens.
PATIENCE_SECONDS = 5.0
STOP_SECONDS = 5
# Longer than the front door keeps an idle connection.
KEEP_ALIVE_SECONDS = 75
# Further connections are refused before anything is read of them.
SPARE_CONNECTIONS = 100

T = TypeVar("T")


@dataclass(frozen=True)
class Times:
    """Seconds. ``check``: how long a stream may outlive its session. ``send``: how long a client
    may take nothing of what is sent to it."""

    check: float = 60.0
    send: float = 30.0


class Database:
    """Asks the database in a thread of its own, with one connection."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="database")

    async def ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, _asked, question)


def _asked(question: Callable[[], T]) -> T:
    try:
        return question()
    except (OperationalError, InterfaceError):
        # The database may have been restarted since the last question.
        connections.close_all()
        return question()


class Live:
    """The application."""

    def __init__(self, database: Database, limits: Limits, times: Times | None = None) -> None:
        self._database = database
        self._times = times or Times()
        self.streams = Streams(lambda: database.ask(newest), limits=limits)
        self.routes = Starlette(
            routes=[Route("/healthz", _healthz), Route(PATH, _Endpoint(self), methods=["GET"])]
        )

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Keep a stream open until its client, its session or the server ends it."""
        session = Request(scope).cookies.get(settings.SESSION_COOKIE_NAME, "")
        try:
            account = await self._account_of(session)
        except (Error, asyncio.TimeoutError):
            # The page asks by itself, and tries this again later.
            return await _refusal(503)(scope, receive, send)
        if account is None:
            return await _refusal(403)(scope, receive, send)
        try:
            with self.streams.opened(Listener(session, account)) as stream:
                await self._stream(stream)(scope, receive, send)
        except FullError:
            return await _refusal(503)(scope, receive, send)
        except SendTimeoutError:
            # The connection ends with the request.
            return None

    def _stream(self, stream: Stream) -> EventSourceResponse:
        return EventSourceResponse(
            self._events(stream),
            ping=HEARTBEAT_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(comment=""),
            send_timeout=self._times.send,
        )

    async def _events(self, stream: Stream) -> AsyncIterator[ServerSentEvent]:
        clock = asyncio.get_running_loop()
        # At once, so that the client knows that it is heard.
        yield ServerSentEvent(comment="")
        checked_at = clock.time()
        while True:
            await stream.wait(checked_at + self._times.check - clock.time())
            if clock.time() >= checked_at + self._times.check:
                if not await self._may_go_on(stream.listener):
                    return
                checked_at = clock.time()
            if stream.is_over:
                return
            if stream.take_news():
                yield ServerSentEvent(data="news")

    async def _may_go_on(self, listener: Listener) -> bool:
        with suppress(Error, asyncio.TimeoutError):
            return await self._account_of(listener.session) == listener.account
        # While the database is away, nobody can be asked; the stream says nothing meanwhile.
        return True

    async def _account_of(self, session: str) -> int | None:
        """Return the id of the account that may listen. Raises Error and TimeoutError."""
        if not session:
            return None
        question = self._database.ask(lambda: listener_of(session))
        return await asyncio.wait_for(question, PATIENCE_SECONDS)


class _Endpoint:
    """Tells Starlette's routes that this takes requests as they are."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._live.respond(scope, receive, send)


async def _healthz(request: Request) -> Response:
    return PlainTextResponse("ok")


def _refusal(status: int) -> Response:
    return Response(status_code=status, headers={"Cache-Control": "no-store"})


class _Server(uvicorn.Server):
    """Ends the streams as soon as it is to stop."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        asyncio.get_running_loop().call_soon_threadsafe(self._streams.end)


def serve(address: str, parent: int | None = None) -> None:
    """Serve until SIGTERM. ``address``: unix:/path or host:port. ``parent``: the process with
    which this one ends; by default it ends with none."""
    limits = Limits()
    live = Live(Database(), limits)

    async def look_for_parent() -> None:
        if parent is not None and os.getppid() != parent:
            # At once, as the web servers do.
            os._exit(1)

    config = uvicorn.Config(
        live.routes,
        # What it does without more packages.
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.in_all + SPARE_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        callback_notify=look_for_parent,
        timeout_notify=1,
    )
    with _bound(address) as listening:
        _Server(config, live.streams).run([listening])


def _bound(address: str) -> socket.socket:
    if not address.startswith("unix:"):
        host, _, port = address.rpartition(":")
        return socket.create_server((host.strip("[]"), int(port)), family=_family(host))
    path = Path(address.removeprefix("unix:"))
    # Of a process that ended.
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    return listening


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


# Read a state of the database that differs after each change shown by the inbox and by open
# conversations.


# As many rows are looked at, so that a row counts though a later one was committed before it.
LOOKED_AT = 100
# What staff or integrators did, except for reading: each page that reads would cause the next.
QUESTION = f"""
SELECT
  (SELECT string_agg(concat_ws(' ', m.message_id, m.version, f.state), ',')
     FROM (SELECT message_id, xmin AS version FROM {Message._meta.db_table}
            ORDER BY received_at DESC, order_num DESC LIMIT {LOOKED_AT}) AS m
     LEFT JOIN {MediaFile._meta.db_table} AS f USING (message_id)),
  (SELECT string_agg(concat_ws(' ', id, state), ',')
     FROM (SELECT id, state FROM {Turn._meta.db_table}
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS t),
  (SELECT max(id)
     FROM (SELECT id, actor_kind, action FROM {AuditEvent._meta.db_table}
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS e
    WHERE actor_kind IN ('staff', 'api') AND action <> 'conversation.read')
"""  # noqa: S608 names of tables


def newest() -> tuple[Any, ...]:
    """Return the newest messages, answers and acts of staff, with one query that reads by index.

    ``xmin`` is PostgreSQL's own number of a row's version: it changes with each update.
    """
    with connection.cursor() as cursor:
        cursor.execute(QUESTION)
        row: tuple[Any, ...] = cursor.fetchone()
        return row


# The open streams of one process: all of them hear of what one question to the database finds.

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
