"""Tiles on how well the assistant did: outcomes of questions, beside the usual ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.foundation.admin_kit.periods import TODAY
from memoryproject.staff_site.dashboard import figure_links
from memoryproject.staff_site.dashboard.figure_links import Places
from memoryproject.staff_site.dashboard.figures import Figures
from memoryproject.staff_site.dashboard.number_format import (
    count_shown,
    mean_shown,
    seconds_shown,
)
from memoryproject.staff_site.dashboard.tiles import Note, Tile
from memoryproject.staff_site.dashboard.usual_day import Usual, usual_until


def answer_tiles(figures: Figures, to: Places, *, period: str, now: datetime) -> Iterator[Tile]:
    """Yield what became of the questions of a period; today's beside what is usual by now."""
    if not to.may("sessions_app.view_turn"):
        return
    usual = usual_until(now) if period == TODAY else Usual()

    def turns(filters: dict[str, str]) -> str:
        return to.list_of(figure_links.TURNS, period, **filters)

    def tile(name: str, title: str, address: str, note: str = "", tone: str = "") -> Tile:
        count = int(getattr(figures, name))
        notes = [Note(text) for text in (note, _compared(usual, name)) if text]
        return Tile(name, title, count_shown(count), address, notes, tone if count else "")

    sent = turns({"state__exact": "sent"})
    yield tile("answers", _("Answers"), sent)
    yield tile("held", _("Handed over"), turns(figure_links.HELD), _("left to a person"))
    yield tile("failed", _("Failed"), turns({"state__exact": "failed"}), tone="bad")
    late = _("past WhatsApp's 24 hours")
    yield tile("missed", _("Too late to answer"), turns({"state__exact": "missed"}), late, "warn")
    questions = to.unknown_questions(period)
    unknown = _("nothing was recalled")
    yield tile("unknown", _("Unknown questions"), questions, unknown, "warn")
    yield _ratings(figures, usual, turns(figure_links.RATED_BAD), turns(figure_links.RATED_GOOD))
    slow = _("95 %% under %(time)s") % {"time": seconds_shown(figures.p95)}
    notes = [Note(slow)] if figures.answers else []
    yield Tile("time", _("Answer time, median"), seconds_shown(figures.p50), sent, notes)


def _ratings(figures: Figures, usual: Usual, bad: str, good: str) -> Tile:
    rated = ngettext("%(number)s rated good", "%(number)s rated good", figures.rated_good)
    notes = [Note(rated % {"number": count_shown(figures.rated_good)}, good)]
    if compared := _compared(usual, "rated_bad"):
        notes.append(Note(compared))
    tone = "bad" if figures.rated_bad else ""
    return Tile("rated_bad", _("Rated bad"), count_shown(figures.rated_bad), bad, notes, tone)


def _compared(usual: Usual, name: str) -> str:
    """Return what is usual; empty where nothing can be compared."""
    if not usual.days:
        return ""
    number = {"number": mean_shown(usual.means[name])}
    if usual.is_yesterday:
        return _("yesterday by this time: %(number)s") % number
    return _("usual by this time: %(number)s") % number
