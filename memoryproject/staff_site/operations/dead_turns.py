"""Replies that weren't delivered: failed, missed, unconfirmed and stuck turns with the reason.

The texts of conversations are on other pages, where reading them is audited.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.staff_site.operations.job_words import words_for
from sessions_app.models import Chat, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState

STUCK = "stuck"
STUCK_AFTER = timedelta(minutes=5)
ENDED = (TurnState.FAILED, TurnState.UNCONFIRMED, TurnState.MISSED)
OPEN = (*WAITING_STATES, TurnState.SENDING)
KINDS = (str(TurnState.FAILED), str(TurnState.UNCONFIRMED), str(TurnState.MISSED), STUCK)
# The limit up to which a page counts.
MAX_COUNTED = 1_000
FAULT = re.compile(r"([A-Za-z_]\w{0,80}): ")
HTTP = re.compile(r"HTTP (\d{3})")
# Meta's code for a closed window, as it appears in its messages.
WINDOW = "(#131047)"


@dataclass(frozen=True)
class DeadTurn:
    """An undelivered reply. ``kind`` is one of KINDS. ``held``: a worker has it at this moment."""

    turn: Turn
    kind: str
    reason: str
    held: bool


def turns_of(kind: str, *, now: datetime | None = None) -> QuerySet[Turn]:
    """Return the turns of a kind, newest first; those of all kinds for an empty one."""
    now = now or timezone.now()
    if kind == STUCK:
        which = _stuck(now)
    elif kind:
        which = Q(state=kind)
    else:
        # By their keys: this way each half uses its own index.
        stuck = Turn.objects.filter(_stuck(now)).order_by().values_list("pk", flat=True)
        which = Q(state__in=ENDED) | Q(pk__in=list(stuck[:MAX_COUNTED]))
    found = Turn.objects.filter(which).select_related("chat").order_by("-id")
    return found.defer("unstored_text", "unstored_reply")


def _stuck(now: datetime) -> Q:
    """Match turns that began or waited long ago and aren't postponed."""
    old = now - STUCK_AFTER
    put_off = Q(not_before__isnull=True) | Q(not_before__lt=old)
    waits = Q(state__in=WAITING_STATES) | Q(state=TurnState.SENDING)
    return waits & Q(created_at__lt=old) & put_off


def counts(*, now: datetime | None = None) -> dict[str, int]:
    """Return the number of turns of each kind, up to MAX_COUNTED."""
    now = now or timezone.now()
    return {kind: turns_of(kind, now=now)[:MAX_COUNTED].count() for kind in KINDS}


def dead_turn(turn: Turn, *, now: datetime | None = None) -> DeadTurn:
    now = now or timezone.now()
    ended = turn.state in ENDED
    held = not ended and turn.is_held(now)
    return DeadTurn(turn, turn.state if ended else STUCK, reason_of(turn), held)


def by_chat(turns: list[DeadTurn]) -> list[tuple[Chat, list[DeadTurn]]]:
    """Group one page's turns by chat. The chat of the newest turn comes first."""
    found: dict[UUID, list[DeadTurn]] = {}
    for each in turns:
        found.setdefault(each.turn.chat_id, []).append(each)
    return [(group[0].turn.chat, group) for group in found.values()]


REASONS = {
    TurnState.MISSED: gettext_lazy(
        "The message was past WhatsApp's 24 hours before it could be answered."
    ),
    TurnState.UNCONFIRMED: gettext_lazy(
        "The connection broke while the answer was being sent: it may have arrived."
    ),
    TurnState.SENDING: gettext_lazy("It is not known yet whether the answer went out."),
    TurnState.REPLIED: gettext_lazy("The answer is stored and waits to be sent."),
    TurnState.PENDING: gettext_lazy("No worker has taken it up."),
    TurnState.RUNNING: gettext_lazy("A worker began with it and has not ended."),
}


def reason_of(turn: Turn) -> str:
    """Return the reason, without any text of the conversation."""
    if turn.error and turn.state not in (TurnState.MISSED, TurnState.UNCONFIRMED):
        return error_words(turn.error)
    return str(REASONS[TurnState(turn.state)]) if turn.state in REASONS else words_for("")


def error_words(error: str) -> str:
    """Return a turn's error: the provider's HTTP status in words, or the kind of fault."""
    status = HTTP.match(error)
    if WINDOW in error:
        return _("The person has not written for more than 24 hours: WhatsApp allows no answer.")
    if status and status[1] in ("401", "403"):
        text = _("The provider did not accept our credentials (HTTP %(status)s).")
        return text % {"status": status[1]}
    if status:
        return _("The provider refused the answer (HTTP %(status)s).") % {"status": status[1]}
    if error.startswith("the provider can't be reached"):
        return _("The provider could not be reached.")
    if error.startswith("The disk is full"):
        return _("The disk is full.")
    fault = FAULT.match(error)
    return words_for(fault[1]) if fault else _("The answer could not be sent.")
