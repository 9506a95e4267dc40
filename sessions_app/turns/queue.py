"""Answer the turns that wait in a chat, one after the other."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.leases import LeaseLostError
from memoryproject.foundation.process.log_context import log_context
from memoryproject.foundation.process.tracing import span
from sessions_app.conversations.facade import parse_command
from sessions_app.embedding.facade import messages_embed
from sessions_app.limits.facade import is_known, known_chats_waiting
from sessions_app.models import Turn
from sessions_app.models.chats import Provider
from sessions_app.models.turn_states import turn_move
from sessions_app.models.turns import TurnState
from sessions_app.turns.answer import turn_run
from sessions_app.turns.open_questions import turn_followed_up
from sessions_app.turns.pictures import KIND as PICTURE
from sessions_app.turns.statuses import send_followed_up
from sessions_app.turns.turn_claims import TurnLease, turn_claim, turns_waiting
from sessions_app.turns.turn_dependencies import Dependencies

logger = logging.getLogger(__name__)

OPEN_STATES = (TurnState.PENDING, TurnState.RUNNING)


def queued_chat_answer(
    *, chat_id: UUID, dependencies: Dependencies, debounce: timedelta = timedelta(0)
) -> int:
    """Answer the chat as the queue's workers do: the owner and known chats before strangers.

    A worker at a stranger's chat looks before each answer for known chats that wait, and answers
    those first. Returns how many turns of this chat were worked on.
    """

    def answer_known() -> None:
        now = timezone.now()
        godfather = dependencies.chat_memory.godfather
        ahead = known_chats_waiting(godfather=godfather, now=now)
        # Hardly ever does one wait; only then it matters whether this chat is known itself.
        if ahead and chat_id not in ahead and not is_known(chat_id, godfather=godfather, now=now):
            for known in ahead:
                chat_answer(chat_id=known, dependencies=dependencies, debounce=debounce)

    return chat_answer(
        chat_id=chat_id, dependencies=dependencies, debounce=debounce, before_each=answer_known
    )


def chat_answer(
    *,
    chat_id: UUID,
    dependencies: Dependencies,
    debounce: timedelta = timedelta(0),
    may_ask_model: bool = True,
    embed: Callable[[UUID], object] | None = None,
    before_each: Callable[[], None] | None = None,
) -> int:
    """Answer every turn that waits in the chat; return how many were worked on.

    A worker that finds another worker in the chat leaves immediately. The other worker looks for
    more work before it leaves, so no turn is left behind. Without ``may_ask_model`` the worker
    leaves at the first turn that needs a model.

    ``embed`` makes the vectors of a session's messages; by default the worker does, at the end.
    ``before_each`` is called before a turn is claimed.
    """
    worked = 0
    sessions: set[UUID | None] = set()
    while may_ask_model or not next_needs_model(chat_id):
        if before_each is not None:
            before_each()
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
        with log_context(chat=chat_id, turn=lease.row.turn_id), span("turn"):
            turn_run(lease=lease, dependencies=dependencies)
        send_followed_up(turn=lease.row, enqueue=dependencies.enqueue)
        turn_followed_up(
            turn=lease.row,
            enqueue=dependencies.enqueue,
            max_age=dependencies.rules.max_answer_age,
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
    return turn_needs_model(state=state, context=context, text=text, in_group=in_group)


def turn_needs_model(*, state: str, context: Mapping[str, Any], text: str, in_group: bool) -> bool:
    """Return whether a turn in this state may ask a model, or read a file."""
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
