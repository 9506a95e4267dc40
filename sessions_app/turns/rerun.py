"""Run a turn again on request of staff.

A failed turn is answered again. A turn whose sending is uncertain is sent again; this is the only
way in which a part goes out twice.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.choices import labelled
from sessions_app.conversations.chat_queries import has_window, last_heard
from sessions_app.limits import answer_limits, intake
from sessions_app.limits.dependencies import is_owners
from sessions_app.media.fetch import attachment_of
from sessions_app.models import Chat, OutboundPart, Outcome, PartState, Standing, Turn, TurnState
from sessions_app.models.messages import APOLOGY
from sessions_app.models.turns import TEMPLATE, turn_move
from sessions_app.turns import answer_review, send, turn_claims

RERUNNABLE = (TurnState.FAILED, TurnState.UNCONFIRMED, TurnState.HELD)
SEND, ANSWER = "send", "answer"


class Refusal(models.TextChoices):
    """Why a rerun is refused, in words for staff.

    NOT_IN_TROUBLE: the turn is not, or no longer, failed, unconfirmed or held. BLOCKED: the turn
    would end as refused, for good. WORDS_GONE: the text to send, or the message to answer, isn't
    stored any more.
    """

    NOT_IN_TROUBLE = labelled(
        "not_in_trouble",
        _("Nothing was done: the answer needs no retry, or a colleague was faster."),
    )
    TOO_LATE = labelled("too_late", _("It can't be run again: WhatsApp's window for it is closed."))
    PAUSED = labelled(
        "paused",
        _("It can't be answered now: the assistant is paused in this chat. Turn it back on first."),
    )
    BLOCKED = labelled(
        "blocked", _("It can't be run again: the chat is blocked. Unblock it first.")
    )
    WORDS_GONE = labelled(
        "words_gone", _("It can't be run again: what it is about isn't kept any more.")
    )


class RerunRefusedError(Exception):
    """The rerun was refused; nothing was changed. ``why`` is one of Refusal."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    @property
    def text(self) -> str:
        return str(Refusal(self.why).label)


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
        chat = turn_claims.chat_locked(
            Turn.objects.values_list("chat_id", flat=True).get(pk=turn_id)
        )
        turn = Turn.objects.select_for_update(no_key=True).get(pk=turn_id)
        if seen is not None and turn.finished_at != seen:
            raise RerunRefusedError(Refusal.NOT_IN_TROUBLE)
        action = rerun_check(turn=turn, chat=chat, max_age=max_age, now=now)
        if action == SEND:
            _send_again(turn)
        else:
            turn_claims.turn_unhold(turn)
        answer_review.turn_audit("turn.resend" if action == SEND else "turn.rerun", turn, actor)
        chat_id = chat.pk
        # Where the queue is down the sweep finds it.
        transaction.on_commit(lambda: enqueue(chat_id), robust=True)
    return action


def rerun_check(*, turn: Turn, chat: Chat, max_age: timedelta, now: datetime) -> str:
    """Return what a rerun would do, SEND or ANSWER.

    Raises RerunRefusedError.
    """
    if turn.state not in RERUNNABLE:
        raise RerunRefusedError(Refusal.NOT_IN_TROUBLE)
    is_blocked = intake.access_of(chat).standing == Standing.BLOCKED
    if is_blocked and answer_limits.can_be_blocked(turn, is_owners=is_owners(chat)):
        raise RerunRefusedError(Refusal.BLOCKED)
    parts = list(turn.parts.all())
    if not parts:
        if not turn_claims.has_words(turn):
            raise RerunRefusedError(Refusal.WORDS_GONE)
        if now - turn.asked_at > max_age:
            raise RerunRefusedError(Refusal.TOO_LATE)
        if turn_claims.pause_in_force(chat.pk, now) and not turn_claims.is_command(turn):
            raise RerunRefusedError(Refusal.PAUSED)
        return ANSWER
    unsent = [part for part in parts if part.state != PartState.SENT]
    if not unsent:
        raise RerunRefusedError(Refusal.NOT_IN_TROUBLE)
    if not all(_is_sendable(turn, part) for part in unsent):
        raise RerunRefusedError(Refusal.WORDS_GONE)
    # A new message from the person has opened the window again.
    if _has_window(turn) and now - max(turn.asked_at, last_heard(chat) or turn.asked_at) > max_age:
        raise RerunRefusedError(Refusal.TOO_LATE)
    return SEND


def _is_sendable(turn: Turn, part: OutboundPart) -> bool:
    """Return whether a part still has what it sends."""
    return attachment_of(turn) is not None if send.sends_file(turn, part) else bool(part.content)


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
