"""The program `manage.py answer`: threads that answer the turns which wait in PostgreSQL.

Each thread takes the chat to be answered next and answers one of its turns. Any number of these
programs run at once, on any number of machines: a turn is claimed by a conditional update. They
wait for HTTP nearly all the time, so threads are enough.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, Full, Queue
from uuid import UUID

from django.core.cache import cache
from django.db import Error, close_old_connections, connection, connections
from django.utils import timezone

from memoryproject.foundation.leases import this_process
from sessions_app.turns.queue import CHANNEL, chat_answer, next_chat, next_quick_chat
from sessions_app.turns.turn_claims import turns_ready
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

# Threads that never wait for a model: commands, notices and stored answers have these besides.
QUICK_THREADS = 2
# The pause between two looks for turns of which nothing was heard: those whose time has come.
POLL_SECONDS = 0.3
# How often the work of dead programs is looked for.
TEND_SECONDS = 10.0
# A chat that couldn't be answered, and a database that couldn't be reached, are tried again then.
LATER_SECONDS = 1.0
# A thread that had nothing to do for so long closes its connection to the database.
IDLE_SECONDS = 20.0
BEAT_SECONDS = 2.0
# Heartbeats older than this don't count; a machine under load beats late.
BEAT_LASTS = timedelta(seconds=15)
BEATS = "answer-heartbeats"


@dataclass(frozen=True)
class Heartbeat:
    """The last sign of life of one program: its machine and process, and its threads."""

    name: str
    at: datetime
    threads: int
    busy: int

    @property
    def host(self) -> str:
        return self.name.partition(":")[0]


class Answerer:
    """Answers turns in ``threads`` threads, and those that need no model in QUICK_THREADS more.

    ``godfather``: the owner's ids. ``dependencies`` makes those of one turn. ``embed`` lets the
    vectors of a session's messages be made. ``tend`` is called now and every TEND_SECONDS.
    """

    def __init__(
        self,
        *,
        threads: int,
        godfather: Collection[str],
        dependencies: Callable[[], Dependencies],
        embed: Callable[[UUID], object],
        tend: Callable[[], object],
        debounce: timedelta = timedelta(0),
    ) -> None:
        self._godfather = godfather
        self._dependencies = dependencies
        self._embed = embed
        self._tend = tend
        self._debounce = debounce
        self._threads = {False: threads, True: QUICK_THREADS}
        # A call lets one thread look for a turn. More calls than threads would change nothing.
        self._calls: dict[bool, Queue[None]] = {
            is_quick: Queue(number) for is_quick, number in self._threads.items()
        }
        self._lock = threading.Lock()
        self._taken: set[UUID] = set()
        # Chats that couldn't be answered, with the time at which they are looked at again.
        self._later: dict[UUID, float] = {}
        self._is_stopping = threading.Event()

    def stop(self) -> None:
        """Take no more turns. Those that are being answered are finished."""
        self._is_stopping.set()
        for is_quick, number in self._threads.items():
            for _ in range(number):
                # So that each thread notices it.
                self._call(is_quick)

    def run(self) -> None:
        """Answer until ``stop``; return when all threads have ended."""
        threads = [
            threading.Thread(target=self._work, args=(is_quick,), name=f"answers {number}")
            for is_quick, most in self._threads.items()
            for number in range(most)
        ]
        for thread in threads:
            thread.start()
        self._listen()
        for thread in threads:
            thread.join()

    def answer_next(self, *, is_quick: bool = False) -> bool:
        """Answer one turn, or none where none waits; return whether one was answered."""
        chat_id = self._take(is_quick)
        if chat_id is None:
            return False
        # There may be more.
        self._call(is_quick)
        worked = 0
        try:
            worked = chat_answer(
                chat_id=chat_id,
                dependencies=self._dependencies(),
                debounce=timedelta(0) if is_quick else self._debounce,
                may_ask_model=not is_quick,
                embed=self._embed if is_quick else None,
                most=1,
            )
        finally:
            with self._lock:
                self._taken.discard(chat_id)
                if not worked:
                    self._later[chat_id] = time.monotonic() + LATER_SECONDS
        return bool(worked)

    def _take(self, is_quick: bool) -> UUID | None:
        with self._lock:
            self._later = {
                chat: until for chat, until in self._later.items() if until > time.monotonic()
            }
            besides = {*self._taken, *self._later}
            now = timezone.now()
            if is_quick:
                chat_id = next_quick_chat(besides=besides, now=now)
            else:
                chat_id = next_chat(godfather=self._godfather, besides=besides, now=now)
            if chat_id is not None:
                self._taken.add(chat_id)
            return chat_id

    def _call(self, is_quick: bool) -> None:
        with suppress(Full):
            self._calls[is_quick].put_nowait(None)

    def _work(self, is_quick: bool) -> None:
        """Answer turns whenever a call comes."""
        while not self._is_stopping.is_set():
            try:
                self._calls[is_quick].get(timeout=IDLE_SECONDS)
            except Empty:
                # An idle connection costs PostgreSQL some megabytes.
                connections.close_all()
                continue
            try:
                close_old_connections()
                while not self._is_stopping.is_set() and self.answer_next(is_quick=is_quick):
                    pass
            except Exception:
                logger.exception("A turn could not be answered. It is tried again.")
                connections.close_all()
        connections.close_all()

    def _listen(self) -> None:
        """Call the threads whenever PostgreSQL tells of a turn, or one's time has come."""
        tend_at = beat_at = time.monotonic()
        is_listening = False
        while not self._is_stopping.is_set():
            try:
                if not is_listening:
                    with connection.cursor() as cursor:
                        cursor.execute(f"LISTEN {CHANNEL}")
                    is_listening = True
                if time.monotonic() >= tend_at:
                    tend_at = time.monotonic() + TEND_SECONDS
                    self._tend()
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + BEAT_SECONDS
                    self.beat()
                if self._is_notified() or self._is_due():
                    for is_quick in self._calls:
                        self._call(is_quick)
            except Exception:
                logger.exception("Turns can't be looked for. This is tried until it succeeds.")
                is_listening = False
                connections.close_all()
                self._is_stopping.wait(LATER_SECONDS)
        connections.close_all()

    def _is_notified(self) -> bool:
        """Wait for PostgreSQL to tell of turns, at most POLL_SECONDS."""
        connection.ensure_connection()
        found = connection.connection.notifies(timeout=POLL_SECONDS, stop_after=1)
        return any(True for _ in found)

    def _is_due(self) -> bool:
        with self._lock:
            besides = {*self._taken, *self._later}
        return turns_ready(timezone.now()).exclude(chat__in=besides).exists()

    def beat(self) -> None:
        """Store this program's heartbeat."""
        now = timezone.now()
        others = {each.name: each for each in heartbeats(now)}
        beat = Heartbeat(this_process(), now, sum(self._threads.values()), len(self._taken))
        cache.set(BEATS, {**others, beat.name: beat}, BEAT_LASTS.total_seconds())


def heartbeats(now: datetime) -> list[Heartbeat]:
    """Return those of the programs that live.

    Two programs that beat in the same moment may hide each other until the next beat.
    """
    try:
        beats: dict[str, Heartbeat] = cache.get(BEATS) or {}
    except Error:
        # The cache's table doesn't exist yet.
        return []
    return [each for each in beats.values() if abs(now - each.at) < BEAT_LASTS]
