"""What background jobs are called, and why jobs and answers failed, for staff."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.tables import read_table
from sessions_app.models import Chat, Turn
from sessions_app.models.turns import WAITING_STATES, TurnState

_WORDS = read_table(__file__, "job_words.yaml")

FRAME = re.compile(
    r'File "[^"]*?((?:memoryproject|sessions_app|memories_app|cards_app)/[\w/]+\.py)", line (\d+)'
)
CLASS_NAME = re.compile(r"[A-Za-z_]\w{0,80}")
NO_FUNCTION = re.compile(r"Function [\w.]+ is not defined")


@dataclass(frozen=True)
class Fault:
    """An error.

    ``text``: in words. ``name``: the kind of error. ``place``: the last line of our code in the
    traceback, such as sessions_app/tasks.py:42.
    """

    text: str
    name: str
    place: str


def kind_of(function: str) -> str:
    """Return what a job does, in words; the function's name if it has no description."""
    return str(_WORDS["jobs"].get(function, function))


def fault_of(result: object) -> Fault:
    """Return the fault from django-q2's result of a failed job: the error's text and traceback."""
    text = result if isinstance(result, str) else ""
    trace = text.rpartition("Traceback (most recent call last):")[2]
    if not trace or trace == text:
        return Fault(words_for(""), "", "")
    name = _class_of(trace)
    frames = FRAME.findall(trace)
    place = f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
    words = _("There is no such job in this version.") if NO_FUNCTION.search(trace) else ""
    return Fault(words or words_for(name), name, place)


def _class_of(trace: str) -> str:
    """Return the error's class: from the first line after the frames that isn't indented."""
    for line in trace.splitlines()[1:]:
        if line and not line[0].isspace():
            name = line.partition(":")[0].strip().rpartition(".")[2]
            return name if CLASS_NAME.fullmatch(name) else ""
    return ""


def words_for(name: str) -> str:
    """Return the meaning of a kind of error."""
    if name in _WORDS["errors"]:
        return str(_WORDS["errors"][name])
    return _("A fault in the program.") if name else _("It is not known why.")


# Replies that weren't delivered. The texts of conversations are on pages where reading is audited.


STUCK = "stuck"
STUCK_AFTER = timedelta(minutes=5)
ENDED = (TurnState.FAILED, TurnState.UNCONFIRMED, TurnState.MISSED)
OPEN = (*WAITING_STATES, TurnState.SENDING)
TURN_KINDS = (str(TurnState.FAILED), str(TurnState.UNCONFIRMED), str(TurnState.MISSED), STUCK)
# The limit up to which a page counts.
MAX_COUNTED = 1_000
FAULT = re.compile(r"([A-Za-z_]\w{0,80}): ")
HTTP = re.compile(r"HTTP (\d{3})")
# Meta's code for a closed window, as it appears in its messages.
WINDOW = "(#131047)"


def turns_of(kind: str) -> QuerySet[Turn]:
    """Return the turns of a kind, newest first; those of all kinds for an empty one."""
    if kind == STUCK:
        which = _stuck(timezone.now())
    elif kind:
        which = Q(state=kind)
    else:
        # By their keys: this way each half uses its own index.
        stuck = Turn.objects.filter(_stuck(timezone.now())).order_by().values_list("pk", flat=True)
        which = Q(state__in=ENDED) | Q(pk__in=list(stuck[:MAX_COUNTED]))
    found = Turn.objects.filter(which).select_related("chat").order_by("-id")
    return found.defer("unstored_text", "unstored_reply")


def _stuck(now: datetime) -> Q:
    """Match turns that began or waited long ago and aren't postponed."""
    old = now - STUCK_AFTER
    put_off = Q(not_before__isnull=True) | Q(not_before__lt=old)
    waits = Q(state__in=WAITING_STATES) | Q(state=TurnState.SENDING)
    return waits & Q(created_at__lt=old) & put_off


def counts() -> dict[str, int]:
    """Return the number of turns of each kind, up to MAX_COUNTED."""
    return {kind: turns_of(kind)[:MAX_COUNTED].count() for kind in TURN_KINDS}


def dead_turn(turn: Turn) -> dict[str, Any]:
    """Return an undelivered reply with its kind of TURN_KINDS, and whether a worker has it now."""
    ended = turn.state in ENDED
    return {
        "turn": turn,
        "kind": turn.state if ended else STUCK,
        "reason": reason_of(turn),
        "held": not ended and turn.is_held(timezone.now()),
    }


def by_chat(turns: list[dict[str, Any]]) -> list[tuple[Chat, list[dict[str, Any]]]]:
    """Group one page's turns by chat. The chat of the newest turn comes first."""
    found: dict[UUID, list[dict[str, Any]]] = {}
    for each in turns:
        found.setdefault(each["turn"].chat_id, []).append(each)
    return [(group[0]["turn"].chat, group) for group in found.values()]


def reason_of(turn: Turn) -> str:
    """Return the reason, without any text of the conversation."""
    if turn.error and turn.state not in (TurnState.MISSED, TurnState.UNCONFIRMED):
        return error_words(turn.error)
    reasons = _WORDS["reasons"]
    return str(reasons[turn.state]) if turn.state in reasons else words_for("")


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
