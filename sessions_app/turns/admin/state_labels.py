"""Describe the states of a turn in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from memoryproject.foundation.tables import read_table
from sessions_app.limits.intake import REASONS
from sessions_app.models import Provider, Turn, TurnReplay, TurnState
from sessions_app.models.chats import FIRST_STRONG, POP
from sessions_app.turns.stepping_in import ANSWERED_BY_PERSON

_WORDS = read_table(__file__, "state_labels.yaml")
STATES, _MEANS = _WORDS["labels"], _WORDS["sentences"]
# What the budget left out of a prompt, by the names of the replay record.
LEFT_OUT = _WORDS["left_out"]
GOOD = (TurnState.SENT, TurnState.MERGED)
BAD = (TurnState.FAILED, TurnState.UNCONFIRMED)


def tone_of(turn: Turn) -> str:
    """Return the tone in which the state is shown."""
    return "good" if turn.state in GOOD else "bad" if turn.state in BAD else ""


def turn_crumb(turn: Turn) -> str:
    """Return the name of an answer's page: whom it answers, and on which day."""
    # A name of another direction would take the day's number with it.
    name = f"{FIRST_STRONG}{turn.chat.shown_name}{POP}"
    day = date_format(localtime(turn.created_at), "SHORT_DATE_FORMAT")
    return _("Answer to %(name)s, %(day)s") % {"name": name, "day": day}


def state_means(turn: Turn) -> str:
    """Return the state as a sentence."""
    if turn.state == TurnState.FAILED:
        is_apology = turn.provider == str(Provider.CONSOLE)
        if not is_apology and (turn.reply_id is not None or turn.unstored_reply):
            return _("The answer could not be sent.")
        return _("The message could not be answered.")
    if turn.by_hand and turn.state == TurnState.SENT:
        return _("Staff wrote this themselves, and it was sent.")
    return str(_MEANS.get(turn.state, turn.state))


def trouble_means(turn: Turn) -> str:
    """Return what an error means where the turn went on in spite of it, or an empty text."""
    if not turn.error:
        return ""
    if getattr(turn.error, "code", "") in (*REASONS, ANSWERED_BY_PERSON):
        return _("Why the assistant didn't answer:")
    if turn.state == TurnState.SENT:
        return _("The chat model gave no answer: what was sent says so, or tells what is known.")
    if turn.state in (TurnState.PENDING, TurnState.REPLIED):
        return _("The last try failed; it is tried again.")
    return _("Error:")


# Divide the time that a turn took into the parts of a bar.


# In hundredths of the bar's width, so that a short part stays visible.
NARROWEST = 0.5


@dataclass(frozen=True)
class Span:
    """A stretch of time; ``start`` and ``width`` in hundredths of the bar."""

    name: str
    label: str
    ms: int
    start: float
    width: float

    @property
    def shown(self) -> str:
        return duration(self.ms)


def duration(ms: float) -> str:
    """Return a duration in readable form: 340 ms, 2.1 s, 3 min 5 s, 2 h 4 min."""
    if ms < 1000:
        return _("%(n)d ms") % {"n": round(ms)}
    seconds = ms / 1000
    if seconds < 60:
        return _("%(n).1f s") % {"n": seconds}
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _("%(m)d min %(s)d s") % {"m": minutes, "s": rest}
    hours, minutes = divmod(minutes, 60)
    return _("%(h)d h %(m)d min") % {"h": hours, "m": minutes}


def spans_of(turn: Turn) -> list[Span]:
    """Return the parts from the arrival of the message to the end of its answer.

    They are waiting, recall, the model, the rest of the work, and sending. Only known parts are
    included; the list is empty where none is known.
    """
    timings = TurnReplay.of(turn).timings
    known = {name: int(ms) for name, ms in timings.items() if isinstance(ms, int | float)}
    working = known.get("total_ms", 0)
    recall, model = known.get("recall_ms", 0), known.get("model_ms", 0)
    waited = known.get("waited_ms", 0)
    stretches = [
        ("waiting", _("Waiting"), waited),
        ("recall", _("Recall"), recall),
        ("model", _("Chat model"), model),
        ("other", _("Other work"), working - recall - model),
        ("sending", _("Sending"), _sending(turn, waited + working)),
    ]
    return _placed([each for each in stretches if each[2] > 0])


def _sending(turn: Turn, before: int) -> int:
    """Return the time that is left until the end.

    It is unknown for old turns, whose waiting time was not measured.
    """
    if turn.finished_at is None or (
        "waited_ms" not in TurnReplay.of(turn).timings and not turn.by_hand
    ):
        return 0
    whole = (turn.finished_at - turn.created_at).total_seconds() * 1000
    return max(round(whole) - before, 0)


def _placed(stretches: Sequence[tuple[str, str, int]]) -> list[Span]:
    whole = sum(ms for _name, _label, ms in stretches) or 1
    spans, start = [], 0.0
    for name, label, ms in stretches:
        width = max(ms * 100 / whole, NARROWEST)
        spans.append(Span(name, label, ms, round(min(start, 100 - width), 2), round(width, 2)))
        start += width
    return spans
