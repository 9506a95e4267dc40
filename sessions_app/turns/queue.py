"""Answer the turns that wait in PostgreSQL, of each chat one after the other.

The program `manage.py answer` has threads: each takes the chat to be answered next and answers one
of its turns. Any number of these programs run at once, on any number of machines: a turn is claimed
by a conditional update. They wait for HTTP nearly all the time, so threads are enough.
"""

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
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Greatest
from django.utils import timezone

from memoryproject.foundation.leases import RELEASED, LeaseLostError, this_process
from memoryproject.foundation.outside_services.guards import deadline
from memoryproject.foundation.process.logfile import log_context
from memoryproject.foundation.process.tracing import TRACEPARENT, Kind, span
from sessions_app.embedding.facade import messages_embed
from sessions_app.limits.answer_limits import known_chat
from sessions_app.models import Turn
from sessions_app.models.turns import DEFERRALS, WAITING_STATES, TurnState
from sessions_app.stored_settings import stored_settings_look
from sessions_app.turns import answer, bursts, message_files, open_questions, statuses
from sessions_app.turns.model_reply import lease_release, turn_put_back
from sessions_app.turns.turn_claims import is_command, turn_claim, turns_ready, turns_waiting
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

# PostgreSQL's channel that tells of turns to answer.
CHANNEL = "turns"

# So many of the turns that may need no model are looked at for one that needs none.
QUICK_LOOK = 20
# What a turn without a model is like in SQL; ``next_needs_model`` decides.
MAY_NEED_NO_MODEL = Q(state=TurnState.REPLIED) | bursts.IS_QUICK
# So long an embedder is waited for that is out of reach or slow.
VECTORS_SECONDS = 5.0


def answer_soon(_chat_id: UUID) -> None:
    """Wake the programs that answer, once the open transaction is committed.

    Nothing depends on it: they also look for themselves.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")


def next_chat(
    *,
    godfather: Collection[str],
    besides: Collection[UUID],
    now: datetime,
    debounce: timedelta = timedelta(0),
) -> UUID | None:
    """Return the chat to answer next: the owner and known chats go before strangers.

    ``besides``: chats that are left out. So are those whose person wrote within ``debounce``.
    """
    ready = bursts.without_open_bursts(turns_ready(now), wait=debounce, now=now)
    ready = ready.exclude(chat__in=besides)
    first: list[UUID] = list(ready.values_list("chat_id", flat=True)[:2])
    if len(first) < 2:
        return next(iter(first), None)
    known = ready.filter(known_chat(godfather=godfather, now=now))
    return known.values_list("chat_id", flat=True).first() or first[0]


def next_quick_chat(
    *, besides: Collection[UUID], now: datetime, asking: Collection[UUID] = ()
) -> UUID | None:
    """Return the chat that waits longest with a turn that needs no model.

    ``asking``: chats in which a question is being answered; a command may go before it.
    """
    earlier = Turn.objects.filter(
        chat=OuterRef("chat"), id__lt=OuterRef("id"), state__in=WAITING_STATES
    )
    ready = turns_ready(now).exclude(chat__in=[*besides, *asking])
    ready = ready.filter(MAY_NEED_NO_MODEL, ~Exists(earlier))
    chats = list(ready.values_list("chat_id", flat=True)[:QUICK_LOOK])
    first = bursts.commands_first(now).exclude(chat__in=besides).values_list("chat_id", flat=True)
    return next((chat for chat in chats if not next_needs_model(chat)), None) or first.first()


def chat_answer(
    *,
    chat_id: UUID,
    dependencies: Dependencies,
    may_ask_model: bool = True,
    embed: Callable[[UUID], object] | None = None,
    most: int | None = None,
) -> int:
    """Answer the turns that wait in the chat, at most ``most``; return how many were worked on.

    A worker that finds another worker in the chat leaves immediately. The other worker looks for
    more work before it leaves, so no turn is left behind. Without ``may_ask_model`` the worker
    leaves at the first turn that needs a model, unless a command goes before it.

    ``embed`` makes the vectors of a session's messages; by default the worker does, at the end.
    """
    worked = 0
    sessions: set[UUID] = set()
    while worked != most:
        may_claim = may_ask_model or not next_needs_model(chat_id)
        lease = (may_claim and turn_claim(chat_id=chat_id)) or bursts.command_claim(chat_id=chat_id)
        if lease is None:
            break
        worked += 1
        try:
            if gap := dependencies.rules.burst_gap:
                lease = bursts.burst_join(lease, gap=gap)
        except LeaseLostError as lost:
            logger.warning("%s", lost)
            continue
        except Error as error:
            # Else the chat would wait until the lease ends.
            turn_put_back(lease, error, dependencies)
            lease_release(lease)
            continue
        turn, enqueue = lease.row, dependencies.enqueue
        job = span("turn", Kind.CONSUMER, parent=turn.context.get(TRACEPARENT, ""))
        with log_context(chat=chat_id, turn=turn.turn_id), job:
            answer.turn_run(lease=lease, dependencies=dependencies)
        statuses.send_followed_up(turn=turn, enqueue=enqueue)
        if DEFERRALS in turn.context and enqueue is not None:
            open_questions.turn_followed_up(
                turn=turn, enqueue=enqueue, max_age=dependencies.rules.max_answer_age
            )
        # Without a session where memory is off.
        sessions.update(filter(None, [turn.session_id]))
    # After the answers: an embedder that is slow or down must not hold them up.
    for session_id in sessions:
        embed(session_id) if embed else _embed(session_id, dependencies)
    return worked


def _embed(session_id: UUID, dependencies: Dependencies) -> None:
    with deadline(VECTORS_SECONDS):
        messages_embed(session_id=session_id, embedder=dependencies.embedder)


def next_needs_model(chat_id: UUID) -> bool:
    """Return whether the chat's next turn may ask a model, or read a file, which takes as long.

    A command and a notice need none, and an answer that is stored is only sent. False without a
    turn.
    """
    turn = turns_waiting(chat_id).first()
    if turn is None or turn.state not in bursts.OPEN_STATES or "notice" in turn.context:
        return False
    text = turn.message.content if turn.message else turn.unstored_text
    # A model may see the picture without a text.
    is_read = bursts.names_file(turn.context) or turn.context.get("kind") == message_files.PICTURE
    return is_read or (bool(text.strip()) and not is_command(turn))


# The program that answers.

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
# The answers that are being made when the program is told to stop have so long; docs/deploy.md has
# all limits of time. A model may take minutes.
STOP_SECONDS = 3.0
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


@dataclass
class Answerer:
    """Answers turns in ``threads`` threads, and those that need no model in QUICK_THREADS more.

    ``godfather`` returns the owner's ids. ``dependencies`` makes those of one turn. ``embed`` lets
    the vectors of a session's messages be made. ``tend`` is called now and every TEND_SECONDS.
    """

    threads: int
    godfather: Callable[[], Collection[str]]
    dependencies: Callable[[], Dependencies]
    embed: Callable[[UUID], object]
    tend: Callable[[], object]
    debounce: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        self._threads = {False: self.threads, True: QUICK_THREADS}
        # A call lets one thread look for a turn. More calls than threads would change nothing.
        self._calls: dict[bool, Queue[None]] = {
            is_quick: Queue(number) for is_quick, number in self._threads.items()
        }
        self._lock = threading.Lock()
        # By the threads that ask a model, and by those that don't.
        self._taken: dict[bool, set[UUID]] = {False: set(), True: set()}
        # Chats that couldn't be answered, with the time at which they are looked at again.
        self._later: dict[UUID, float] = {}
        self._is_stopping = threading.Event()
        # The end of a burst is noticed by the next look only.
        self._wait = max(self.debounce - timedelta(seconds=POLL_SECONDS), timedelta(0))

    def stop(self) -> None:
        """Take no more turns. Those that are being answered have STOP_SECONDS to be finished."""
        self._is_stopping.set()
        for is_quick, number in self._threads.items():
            for _ in range(number):
                # So that each thread notices it.
                self._call(is_quick)

    def run(self) -> None:
        """Answer until ``stop``. What isn't finished then is left to the next program.

        The threads that still wait for a model end with the process.
        """
        threads = [
            threading.Thread(
                target=self._work, args=(is_quick,), name=f"answers {number}", daemon=True
            )
            for is_quick, most in self._threads.items()
            for number in range(most)
        ]
        for thread in threads:
            thread.start()
        self._listen()
        gives_up_at = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(gives_up_at - time.monotonic(), 0))
        if any(thread.is_alive() for thread in threads):
            _give_back()

    def answer_next(self, *, is_quick: bool = False) -> bool:
        """Answer one turn, or none where none waits; return whether one was answered."""
        chat_id = self._take(is_quick)
        if chat_id is None:
            return False
        # There may be more.
        self._call(is_quick)
        worked = 0
        sessions: list[UUID] = []
        try:
            dependencies = self.dependencies()
            worked = chat_answer(
                chat_id=chat_id,
                dependencies=dependencies,
                may_ask_model=not is_quick,
                embed=self.embed if is_quick else sessions.append,
                most=1,
            )
        finally:
            with self._lock:
                self._taken[is_quick].discard(chat_id)
                if not worked:
                    self._later[chat_id] = time.monotonic() + LATER_SECONDS
        # The chat doesn't wait for it.
        for session_id in sessions:
            _embed(session_id, dependencies)
        return bool(worked)

    def _take(self, is_quick: bool) -> UUID | None:
        with self._lock:
            besides = self._left_alone()
            now = timezone.now()
            if is_quick:
                asking = self._taken[False] - self._taken[True]
                chat_id = next_quick_chat(besides=besides - asking, now=now, asking=asking)
            else:
                chat_id = next_chat(
                    godfather=self.godfather(), besides=besides, now=now, debounce=self._wait
                )
            if chat_id is not None:
                self._taken[is_quick].add(chat_id)
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
        """Call the threads whenever PostgreSQL tells of a turn, or one's time has come.

        PostgreSQL is waited for at most POLL_SECONDS.
        """
        tend_at = beat_at = time.monotonic()
        is_listening = False
        while not self._is_stopping.is_set():
            try:
                if not is_listening:
                    with connection.cursor() as cursor:
                        cursor.execute(f"LISTEN {CHANNEL}")
                    is_listening = True
                stored_settings_look()
                if time.monotonic() >= tend_at:
                    tend_at = time.monotonic() + TEND_SECONDS
                    self.tend()
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + BEAT_SECONDS
                    self.beat()
                connection.ensure_connection()
                # Read to its end: until then it has the connection's lock.
                heard = list(connection.connection.notifies(timeout=POLL_SECONDS, stop_after=1))
                if heard or self._is_due():
                    for is_quick in self._calls:
                        self._call(is_quick)
            except Exception:
                logger.exception("Turns can't be looked for. This is tried until it succeeds.")
                is_listening = False
                connections.close_all()
                self._is_stopping.wait(LATER_SECONDS)
        connections.close_all()

    def _left_alone(self) -> set[UUID]:
        """Return the chats that are being answered, and those that are looked at again later."""
        self._later = {key: at for key, at in self._later.items() if at > time.monotonic()}
        return {*self._taken[False], *self._taken[True], *self._later}

    def _is_due(self) -> bool:
        with self._lock:
            besides = self._left_alone()
        now = timezone.now()
        ready = bursts.without_open_bursts(turns_ready(now), wait=self._wait, now=now)
        is_ready = ready.exclude(chat__in=besides).exists()
        return is_ready or bursts.commands_first(now).exists()

    def beat(self) -> None:
        """Store this program's heartbeat."""
        now = timezone.now()
        others = {each.name: each for each in heartbeats(now)}
        busy = sum(map(len, self._taken.values()))
        beat = Heartbeat(this_process(), now, sum(self._threads.values()), busy)
        cache.set(BEATS, {**others, beat.name: beat}, BEAT_LASTS.total_seconds())


def _give_back() -> None:
    """Let another program answer what this one hasn't finished, as if it had not been tried.

    Without its lease a thread stores and sends nothing more. A part that is just being sent keeps
    the lease: whether it arrived is found out as after a kill.
    """
    mine = Turn.objects.filter(
        lease_owner=this_process(), lease_token__isnull=False, state__in=WAITING_STATES
    )
    try:
        given = mine.update(attempts=Greatest(F("attempts") - 1, 0), **RELEASED)
        logger.info("%d answers were not finished. The next program makes them.", given)
    except Error:
        logger.exception("Answers could not be given back. The sweep finds them.")
    connections.close_all()


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
