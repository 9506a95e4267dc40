"""Answer the turns that wait in a chat, one after the other, and find the chat to answer next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from memoryproject.foundation.leases import LeaseLostError
from memoryproject.foundation.process.log_context import log_context
from memoryproject.foundation.process.tracing import TRACEPARENT, Kind, span
from sessions_app.conversations.facade import parse_command
from sessions_app.embedding.facade import messages_embed
from sessions_app.limits.facade import known_chat
from sessions_app.models import Turn
from sessions_app.models.chats import Provider
from sessions_app.models.turn_states import turn_move
from sessions_app.models.turns import WAITING_STATES, TurnState
from sessions_app.turns.answer import turn_run
from sessions_app.turns.open_questions import turn_followed_up
from sessions_app.turns.pictures import KIND as PICTURE
from sessions_app.turns.statuses import send_followed_up
from sessions_app.turns.turn_claims import TurnLease, turn_claim, turns_ready, turns_waiting
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

# PostgreSQL's channel that tells of turns to answer.
CHANNEL = "turns"

OPEN_STATES = (TurnState.PENDING, TurnState.RUNNING)


# So many of the turns that may need no model are looked at for one that needs none.
QUICK_LOOK = 20
# Marks the turn of a command, by a slash or in plain words, and of a text that says nothing.
QUICK = "quick"
# What a turn without a model is like in SQL; ``next_needs_model`` decides.
MAY_NEED_NO_MODEL = Q(state=TurnState.REPLIED) | Q(context__has_any_keys=["notice", QUICK])


def answer_soon(_chat_id: UUID) -> None:
    """Wake the programs that answer, once the open transaction is committed.

    Nothing depends on it: they also look for themselves.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"NOTIFY {CHANNEL}")


def next_chat(
    *, godfather: Collection[str], besides: Collection[UUID], now: datetime
) -> UUID | None:
    """Return the chat to answer next: the owner and known chats go before strangers.

    ``besides``: chats that are left out.
    """
    ready = turns_ready(now).exclude(chat__in=besides)
    known = ready.filter(known_chat(godfather=godfather, now=now))
    chats = (turns.values_list("chat_id", flat=True).first() for turns in (known, ready))
    return next(filter(None, chats), None)


def next_quick_chat(*, besides: Collection[UUID], now: datetime) -> UUID | None:
    """Return the chat that waits longest with a turn that needs no model."""
    earlier = Turn.objects.filter(
        chat=OuterRef("chat"), id__lt=OuterRef("id"), state__in=WAITING_STATES
    )
    ready = turns_ready(now).exclude(chat__in=besides).filter(MAY_NEED_NO_MODEL, ~Exists(earlier))
    chats = list(ready.values_list("chat_id", flat=True)[:QUICK_LOOK])
    return next((chat for chat in chats if not next_needs_model(chat)), None)


def chat_answer(
    *,
    chat_id: UUID,
    dependencies: Dependencies,
    debounce: timedelta = timedelta(0),
    may_ask_model: bool = True,
    embed: Callable[[UUID], object] | None = None,
    most: int | None = None,
) -> int:
    """Answer the turns that wait in the chat, at most ``most``; return how many were worked on.

    A worker that finds another worker in the chat leaves immediately. The other worker looks for
    more work before it leaves, so no turn is left behind. Without ``may_ask_model`` the worker
    leaves at the first turn that needs a model.

    ``embed`` makes the vectors of a session's messages; by default the worker does, at the end.
    """
    worked = 0
    sessions: set[UUID | None] = set()
    while worked != most and (may_ask_model or not next_needs_model(chat_id)):
        lease = turn_claim(chat_id=chat_id)
        if lease is None:
            break
        worked += 1
        try:
            if debounce:
                lease = burst_wait(lease=lease, debounce=debounce, sleep=dependencies.sleep)
        except LeaseLostError as lost:
            logger.warning("%s", lost)
            continue
        parent = lease.row.context.get(TRACEPARENT, "")
        with (
            log_context(chat=chat_id, turn=lease.row.turn_id),
            span("turn", Kind.JOB, parent=parent),
        ):
            turn_run(lease=lease, dependencies=dependencies)
        send_followed_up(turn=lease.row, enqueue=dependencies.enqueue)
        turn_followed_up(
            turn=lease.row, enqueue=dependencies.enqueue, max_age=dependencies.rules.max_answer_age
        )
        sessions.add(lease.row.session_id)
    # After the answers: an embedder that is slow or down must not hold them up.
    for session_id in sessions:
        if embed is None or session_id is None:
            messages_embed(session_id=session_id, embedder=dependencies.embedder)
        else:
            embed(session_id)
    return worked


def next_needs_model(chat_id: UUID) -> bool:
    """Return whether the chat's next turn may ask a model, or read a file, which takes as long.

    A command and a notice need none, and an answer that is stored is only sent. False without a
    turn.
    """
    # Whole rows of turn, message and chat would take several times as long.
    columns = ("state", "context", "message__content", "unstored_text", "chat__is_group")
    turn = turns_waiting(chat_id).values_list(*columns).first()
    if turn is None:
        return False
    state, context, content, unstored, in_group = turn
    text = unstored if content is None else content
    is_text = bool(text.strip()) and parse_command(text, in_group=in_group) is None
    is_open = state in OPEN_STATES and "notice" not in context
    # A model may see the picture without a text.
    is_read = _names_file(context) or context.get("kind") == PICTURE
    return is_open and (is_read or is_text)


def burst_wait(
    *, lease: TurnLease, debounce: timedelta, sleep: Callable[[float], None] = time.sleep
) -> TurnLease:
    """Wait until no message came for ``debounce``, then merge the burst into its newest turn.

    The newest message of the burst stands for the others. A command ends a burst.

    Returns the lease of the turn to answer. Raises LeaseLostError.
    """
    while burst := _burst(lease):
        quiet_at = burst[-1].created_at + debounce
        wait = (quiet_at - timezone.now()).total_seconds()
        if wait > 0:
            sleep(min(wait, debounce.total_seconds()))
            lease.renew()
        elif merged := _merge(lease, burst):
            return merged
    return lease


def _burst(lease: TurnLease) -> list[Turn]:
    """Return the turns that can be answered with the one of the lease, that one first.

    The burst ends before the first command. Messages at its end that hold nothing to read are left
    out. The list is empty where the turn must not be answered with others.
    """
    first = Turn.objects.only("chat_id").get(pk=lease.turn_id)
    waiting = Turn.objects.filter(
        chat_id=first.chat_id, state__in=OPEN_STATES, id__gte=lease.turn_id
    )
    burst: list[Turn] = []
    for turn in waiting.select_related("message", "chat").order_by("id"):
        same_session = not burst or turn.session_id == burst[0].session_id
        alone = (
            turn.message is None
            or _is_command(turn)
            or _names_file(turn.context)
            or _is_awaited(turn)
        )
        if alone or not same_session:
            break
        burst.append(turn)
    while len(burst) > 1 and not _text(burst[-1]).strip():
        burst.pop()
    return burst if burst and burst[0].pk == lease.turn_id else []


def _text(turn: Turn) -> str:
    return turn.message.content if turn.message else ""


def _is_command(turn: Turn) -> bool:
    if "notice" in turn.context:
        # Answered by a text of ours: no other message is answered with it.
        return True
    return parse_command(_text(turn), in_group=turn.chat.is_group) is not None


def _names_file(context: Mapping[str, Any]) -> bool:
    """Return whether the turn has a file to read, which is done in its own turn."""
    return context.get("kind") in ("document", "voice", "audio")


def _is_awaited(turn: Turn) -> bool:
    """Return whether a caller in the terminal or at the API waits for this very answer."""
    return turn.provider == str(Provider.CONSOLE)


def _merge(lease: TurnLease, burst: list[Turn]) -> TurnLease | None:
    """Hand the lease from the burst's first turn to its newest.

    The older messages stay in the history, where the newest turn's prompt has them. Returns None,
    and changes nothing, where one of the turns was cancelled meanwhile.
    """
    if len(burst) < 2:
        return lease
    with transaction.atomic():
        held = lease.lock()
        turns = Turn.objects.select_for_update().filter(pk__in=[turn.pk for turn in burst])
        *older, newest = turns.order_by("id")
        if any(turn.state not in OPEN_STATES for turn in (*older, newest)):
            return None
        # The older ones first: one chat has one running turn.
        for turn in older:
            turn_move(
                turn,
                TurnState.MERGED,
                finished_at=timezone.now(),
                lease_token=None,
                context={**turn.context, "merged_into": str(newest.turn_id)},
            )
        turn_move(
            newest,
            TurnState.RUNNING,
            attempts=newest.attempts + 1,
            lease_token=held.lease_token,
            lease_owner=held.lease_owner,
            lease_until=held.lease_until,
        )
    return TurnLease(newest, lease.token)
