"""Pause the assistant in a chat, and resume it.

While a pause is in force the assistant answers no turn of the chat: each turn is *held*. Commands
of a person are still executed: a request to forget something doesn't wait for staff. An answer that
was stored before the pause still goes out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memoryproject.foundation.audit.audit_events import SYSTEM, Actor, audit_record
from sessions_app.conversations.facade import parse_command, unstored_forget
from sessions_app.models import Chat, ChatPause, Turn
from sessions_app.models.turn_states import TransitionError, turn_move, turns_move
from sessions_app.models.turns import TurnState

logger = logging.getLogger(__name__)

NOT_ANSWERED = (TurnState.PENDING, TurnState.RUNNING, TurnState.DEFERRED)


@dataclass(frozen=True)
class Resumed:
    """The result of resuming: whether the chat was paused, and the turn that is answered now."""

    was_paused: bool
    answering: Turn | None = None


def chat_locked(chat_id: UUID) -> Chat:
    """Return the chat, locked as intake locks it, so that no message comes in meanwhile.

    Raises DoesNotExist.
    """
    return Chat.objects.select_for_update(no_key=True).get(pk=chat_id)


def pause_in_force(chat_id: UUID, now: datetime) -> ChatPause | None:
    """Return the pause that is in force now.

    A caller that decides by it must hold the lock of the chat's row, and ask only after that.
    """
    return pauses_in_force(chat_id, now).first()


def pauses_in_force(chat_id: UUID, now: datetime) -> QuerySet[ChatPause]:
    """Return the pause that is in force now, as a query."""
    return ChatPause.objects.filter(Q(until__isnull=True) | Q(until__gt=now), chat=chat_id)


def chat_pause(
    *, chat_id: UUID, until: datetime | None, by: int | None, actor: Actor, now: datetime
) -> ChatPause:
    """Pause the assistant until a time, or until it is resumed.

    A pause that is in force gets the new end. ``by``: the staff member's id. Turns that wait for an
    answer are held, and also those that are being answered. Raises Chat.DoesNotExist.
    """
    with transaction.atomic():
        chat = chat_locked(chat_id)
        before = pause_in_force(chat.pk, now)
        pause, _ = ChatPause.objects.update_or_create(
            chat=chat,
            defaults={"since": before.since if before else now, "until": until, "paused_by_id": by},
        )
        held = _turns_hold(chat.pk)
        details = {"until": until.isoformat() if until else None, "held": held}
        _record("takeover.pause", chat.pk, actor, details)
    logger.info("The assistant is paused in chat %s.", chat_id)
    return pause


def chat_resume(
    *,
    chat_id: UUID,
    actor: Actor,
    now: datetime,
    enqueue: Callable[[UUID], None],
    max_age: timedelta,
    answer_last: bool = False,
) -> Resumed:
    """Resume the assistant; nothing is changed where it isn't paused.

    Messages that came in meanwhile stay unanswered. With ``answer_last`` the last of them is
    answered, unless staff have answered by hand since or it is older than ``max_age``. Raises
    Chat.DoesNotExist.
    """
    with transaction.atomic():
        chat = chat_locked(chat_id)
        if not ChatPause.objects.filter(chat=chat).delete()[0]:
            return Resumed(was_paused=False)
        turn = _last_unhold(chat.pk, since=now - max_age) if answer_last else None
        if turn is not None:
            transaction.on_commit(lambda: enqueue(chat_id), robust=True)
        _end_held(chat.pk, now)
        _record("takeover.resume", chat.pk, actor, {"answers_last": turn is not None})
    logger.info("The assistant goes on in chat %s.", chat_id)
    return Resumed(was_paused=True, answering=turn)


def pauses_end(*, now: datetime) -> int:
    """Delete the pauses that have expired; return how many."""
    ended = 0
    over = ChatPause.objects.filter(until__lte=now)
    for chat_id in over.values_list("chat_id", flat=True):
        with transaction.atomic():
            if Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first() is None:
                continue
            if over.filter(chat=chat_id).delete()[0]:
                _end_held(chat_id, now)
                _record("takeover.resume", chat_id, SYSTEM, {"by": "time"})
                ended += 1
    return ended


def paused_turns_hold(chat_id: UUID, now: datetime) -> None:
    """Hold the waiting turns of the chat where the assistant is paused, whatever made them wait."""
    if pause_in_force(chat_id, now) is None:
        return
    with transaction.atomic():
        chat = Chat.objects.select_for_update(no_key=True).filter(pk=chat_id).first()
        # Check again: the assistant may have been resumed, and a turn put back, in between.
        if chat is not None and pause_in_force(chat_id, now):
            _turns_hold(chat_id)


def pauses_merge(*, old: Chat, young: Chat, now: datetime) -> None:
    """Merge the pauses of two chats that become one; the longer pause counts.

    Call it when the turns have moved, with both chats locked.
    """
    found = list(ChatPause.objects.filter(chat__in=[old, young]))
    if not found:
        return
    longest = longest_pause(found)
    ChatPause.objects.update_or_create(
        chat=old,
        defaults={
            "since": min(pause.since for pause in found),
            "until": longest.until,
            "paused_by_id": longest.paused_by_id,
        },
    )
    if longest.holds(now):
        _turns_hold(old.pk)


def longest_pause(pauses: Collection[ChatPause]) -> ChatPause:
    """Return the pause that ends last."""
    return max(pauses, key=lambda pause: (pause.until is None, pause.until or pause.since))


def last_held(chat_id: UUID, *, since: datetime) -> Turn | None:
    """Return the last message that came during a pause and has no answer."""
    turns = Turn.objects.filter(chat=chat_id).select_related("message")
    turn = turns.filter(Q(by_hand=True) | Q(state=TurnState.HELD)).order_by("-id").first()
    if turn is None or turn.by_hand or turn.asked_at < since:
        return None
    return turn if has_words(turn) else None


def has_words(turn: Turn) -> bool:
    """Return whether the message of the turn is still stored."""
    if turn.message is not None:
        return turn.message.revoked_at is None
    return turn.session_id is None and bool(turn.unstored_text or turn.context.get("media"))


def is_command(turn: Turn) -> bool:
    """Return whether the turn needs no model: a command, or a notice of ours answers it."""
    if "notice" in turn.context:
        return True
    text = turn.message.content if turn.message else turn.unstored_text
    return parse_command(text, in_group=turn.chat.is_group) is not None


def turn_unhold(turn: Turn) -> None:
    """Let the assistant answer a held turn after all.

    Raises TransitionError.
    """
    turn_move(
        turn,
        TurnState.PENDING,
        attempts=0,
        error="",
        not_before=None,
        finished_at=None,
        lease_token=None,
    )


def _last_unhold(chat_id: UUID, *, since: datetime) -> Turn | None:
    turn = last_held(chat_id, since=since)
    try:
        if turn is not None:
            turn_unhold(turn)
    except TransitionError:
        # Its message is being revoked at this moment.
        return None
    return turn


def _turns_hold(chat_id: UUID) -> int:
    """Hold the turns that aren't answered yet.

    A worker that answers one loses its lease and stores nothing. A worker that claims a turn at
    this moment has either committed before, or finds the turn held.
    """
    waiting: QuerySet[Turn] = Turn.objects.filter(chat=chat_id, state__in=NOT_ANSWERED)
    held = 0
    for turn in waiting.select_related("message", "chat").order_by("id"):
        if not is_command(turn):
            held += turns_move(
                Turn.objects.filter(pk=turn.pk, state__in=NOT_ANSWERED),
                TurnState.HELD,
                lease_token=None,
                lease_owner="",
                lease_until=None,
            )
    return held


def _end_held(chat_id: UUID, now: datetime) -> None:
    """End the turns that were held and aren't answered automatically."""
    held = Turn.objects.filter(chat=chat_id, state=TurnState.HELD, finished_at__isnull=True)
    for turn in held.filter(session__isnull=True):
        unstored_forget(turn)
    held.update(finished_at=now)


def _record(action: str, chat_id: UUID, actor: Actor, details: Mapping[str, object]) -> None:
    audit_record(action=action, actor=actor, object_type="chat", object_id=chat_id, details=details)
