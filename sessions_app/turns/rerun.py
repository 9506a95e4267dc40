"""Run a turn again on request of staff.

A failed turn is answered again. A turn whose sending is uncertain is sent again; this is the only
way in which a part goes out twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from sessions_app.conversations.facade import has_window, last_heard
from sessions_app.limits.dependencies import is_owners
from sessions_app.limits.facade import access_of, can_be_blocked
from sessions_app.media.facade import attachment_of
from sessions_app.models import Chat, OutboundPart, Turn
from sessions_app.models.deliveries import PartState
from sessions_app.models.limits import Standing
from sessions_app.models.messages import APOLOGY
from sessions_app.models.turn_states import turn_move
from sessions_app.models.turns import TEMPLATE, Outcome, TurnState
from sessions_app.turns.send import sends_file
from sessions_app.turns.turn_claims import (
    chat_locked,
    has_words,
    is_command,
    pause_in_force,
    turn_unhold,
)

RERUNNABLE = (TurnState.FAILED, TurnState.UNCONFIRMED, TurnState.HELD)
SEND, ANSWER = "send", "answer"


class RerunRefusedError(Exception):
    """The rerun was refused; nothing was changed."""


class NotInTroubleError(RerunRefusedError):
    """The turn is not, or no longer, failed, unconfirmed or held: another action came first."""


class TooLateError(RerunRefusedError):
    """WhatsApp's window is closed."""


class PausedError(RerunRefusedError):
    """Staff have paused the assistant in this chat."""


class BlockedError(RerunRefusedError):
    """Staff have blocked the chat: the turn would end as refused, for good."""


class WordsGoneError(RerunRefusedError):
    """The text to send, or the message to answer, isn't stored any more."""


def turn_rerun(
    *,
    turn_id: int,
    actor: Actor,
    max_age: timedelta,
    enqueue: Callable[[UUID], None],
    now: datetime,
    seen: datetime | None = None,
) -> str:
    """Put the turn back in the queue; return what it waits for now, SEND or ANSWER.

    ``seen``: when the turn had ended on the page that staff looked at. A turn that ended again
    since is left alone. Raises RerunRefusedError and Turn.DoesNotExist.
    """
    with transaction.atomic():
        chat = chat_locked(Turn.objects.values_list("chat_id", flat=True).get(pk=turn_id))
        turn = Turn.objects.select_for_update(no_key=True).get(pk=turn_id)
        if seen is not None and turn.finished_at != seen:
            raise NotInTroubleError
        action = rerun_check(turn=turn, chat=chat, max_age=max_age, now=now)
        if action == SEND:
            _send_again(turn)
        else:
            turn_unhold(turn)
        audit_record(
            action="turn.resend" if action == SEND else "turn.rerun",
            actor=actor,
            object_type="turn",
            object_id=turn.turn_id,
            chat_id=chat.pk,
        )
        chat_id = chat.pk
        # Where the queue is down the sweep finds it.
        transaction.on_commit(lambda: enqueue(chat_id), robust=True)
    return action


def rerun_check(*, turn: Turn, chat: Chat, max_age: timedelta, now: datetime) -> str:
    """Return what a rerun would do, SEND or ANSWER.

    Raises RerunRefusedError.
    """
    if turn.state not in RERUNNABLE:
        raise NotInTroubleError
    is_blocked = access_of(chat).standing == Standing.BLOCKED
    if is_blocked and can_be_blocked(turn, is_owners=is_owners(chat)):
        raise BlockedError
    parts = list(turn.parts.all())
    if not parts:
        if not has_words(turn):
            raise WordsGoneError
        if now - turn.asked_at > max_age:
            raise TooLateError
        if pause_in_force(chat.pk, now) and not is_command(turn):
            raise PausedError
        return ANSWER
    unsent = [part for part in parts if part.state != PartState.SENT]
    if not unsent:
        raise NotInTroubleError
    if not all(_is_sendable(turn, part) for part in unsent):
        raise WordsGoneError
    # A new message from the person has opened the window again.
    if _has_window(turn) and now - max(turn.asked_at, last_heard(chat) or turn.asked_at) > max_age:
        raise TooLateError
    return SEND


def _is_sendable(turn: Turn, part: OutboundPart) -> bool:
    """Return whether a part still has what it sends."""
    return attachment_of(turn) is not None if sends_file(turn, part) else bool(part.content)


def _has_window(turn: Turn) -> bool:
    """Return whether the turn may only be sent while WhatsApp's window is open."""
    written_at_any_time = TEMPLATE in turn.context or not has_window(turn.provider)
    return not (turn.by_hand and written_at_any_time)


def _send_again(turn: Turn) -> None:
    unsent = turn.parts.exclude(state=PartState.SENT)
    unsent.update(state=PartState.WAITING, error="", delivery_status="")
    is_apology = turn.reply is not None and APOLOGY in turn.reply.metadata
    turn_move(
        turn,
        TurnState.REPLIED,
        not_before=None,
        lease_token=None,
        finished_at=None,
        error="",
        outcome=Outcome.FAILED if is_apology else Outcome.ANSWERED,
        attempts=0,
    )
