"""Describe the states of a turn in words."""

from __future__ import annotations

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sessions_app.limits.facade import REASONS
from sessions_app.models import Turn
from sessions_app.models.turns import TurnState

# Short, for lists.
STATES: dict[str, Promise] = {
    TurnState.PENDING: gettext_lazy("waits"),
    TurnState.RUNNING: gettext_lazy("is being answered"),
    TurnState.REPLIED: gettext_lazy("waits to be sent"),
    TurnState.SENDING: gettext_lazy("is being sent"),
    TurnState.SENT: gettext_lazy("answered"),
    TurnState.UNCONFIRMED: gettext_lazy("unconfirmed"),
    TurnState.MISSED: gettext_lazy("missed"),
    TurnState.REFUSED: gettext_lazy("not answered"),
    TurnState.MERGED: gettext_lazy("answered with a later one"),
    TurnState.HELD: gettext_lazy("held"),
    TurnState.DEFERRED: gettext_lazy("kept open"),
    TurnState.CANCELLED: gettext_lazy("cancelled"),
    TurnState.FAILED: gettext_lazy("failed"),
}
GOOD = (TurnState.SENT, TurnState.MERGED)
BAD = (TurnState.FAILED, TurnState.UNCONFIRMED)

_MEANS: dict[str, Promise] = {
    TurnState.PENDING: gettext_lazy("The message is waiting for an answer."),
    TurnState.RUNNING: gettext_lazy("The message is being answered at this moment."),
    TurnState.REPLIED: gettext_lazy("The answer is written and waits to be sent."),
    TurnState.SENDING: gettext_lazy(
        "The answer is being sent, or it isn't known yet whether it went out."
    ),
    TurnState.SENT: gettext_lazy("The message was answered."),
    TurnState.UNCONFIRMED: gettext_lazy(
        "It isn't known whether the answer went out: WhatsApp has not confirmed it."
    ),
    TurnState.MISSED: gettext_lazy(
        "The message was not answered: it was past WhatsApp's 24 hours."
    ),
    TurnState.REFUSED: gettext_lazy("The message was not answered."),
    TurnState.MERGED: gettext_lazy("The message was answered together with a later one."),
    TurnState.HELD: gettext_lazy(
        "The message was not answered by the assistant: staff had paused it."
    ),
    TurnState.DEFERRED: gettext_lazy(
        "The answer failed for a cause outside, and the person got an apology. It is made when the "
        "cause is gone, unless something newer has been said in the chat."
    ),
    TurnState.CANCELLED: gettext_lazy("The message was deleted before it was answered."),
}


def turn_crumb(turn: Turn) -> str:
    """Return the name of an answer's page: whom it answers, and on which day."""
    name = turn.chat.shown_name
    day = date_format(localtime(turn.created_at), "SHORT_DATE_FORMAT")
    return _("Answer to %(name)s, %(day)s") % {"name": name, "day": day}


def state_means(turn: Turn) -> str:
    """Return the state as a sentence."""
    if turn.state == TurnState.FAILED:
        if turn.reply_id is not None or turn.unstored_reply:
            return _("The answer could not be sent.")
        return _("The message could not be answered.")
    if turn.by_hand and turn.state == TurnState.SENT:
        return _("Staff wrote this themselves, and it was sent.")
    return str(_MEANS.get(turn.state, turn.state))


def trouble_means(turn: Turn) -> str:
    """Return what an error means where the turn went on in spite of it, or an empty text."""
    if not turn.error:
        return ""
    if getattr(turn.error, "code", "") in REASONS:
        return _("Why the assistant didn't answer:")
    if turn.state == TurnState.SENT:
        return _("The chat model gave no answer: what was sent says so, or tells what is known.")
    if turn.state in (TurnState.PENDING, TurnState.REPLIED):
        return _("The last try failed; it is tried again.")
    return _("Error:")
