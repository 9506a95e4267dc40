"""The figures of a period and of each of its hours or days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryproject.foundation.admin_kit.periods import DAYS, Period
from memoryproject.foundation.integrations.llm.base import ModelTokens, model_tokens
from memoryproject.staff_site.dashboard.rollups import SUMS, percentile, slots_read


@dataclass
class Figures:
    """The figures of a period.

    ``chats``: with a message or a turn. ``durations``: answers by bin (see ``rollups``).
    ``tokens``: those sent and received, by model. ``receipts``: of forgetting.
    """

    start: datetime
    end: datetime
    messages: int = 0
    messages_in: int = 0
    messages_out: int = 0
    chats: int = 0
    answers: int = 0
    failed: int = 0
    missed: int = 0
    held: int = 0
    unknown: int = 0
    rated_good: int = 0
    rated_bad: int = 0
    memories_added: int = 0
    receipts: int = 0
    memories_forgotten: int = 0
    durations: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tokens: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def p50(self) -> float | None:
        return percentile(self.durations, 0.5)

    @property
    def p95(self) -> float | None:
        return percentile(self.durations, 0.95)

    @property
    def tokens_in(self) -> int:
        return sum(prompt for prompt, _ in self.tokens.values())

    @property
    def tokens_out(self) -> int:
        return sum(completion for _, completion in self.tokens.values())

    def by_model(self, prices: Mapping[str, tuple[float, float]]) -> list[ModelTokens]:
        """Return the tokens of each model with their cost, the most used first."""
        found = [model_tokens(model, *tokens, prices) for model, tokens in self.tokens.items()]
        return sorted(found, key=lambda one: (-one.prompt - one.completion, one.model))

    def _add(self, found: Mapping[str, Any]) -> None:
        """Add a slot's figures, except its chats, which can't be added up."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + int(found["sums"].get(name, 0)))
        for number, answers in found["bins"]:
            self.durations[number] += int(answers)
        for model, prompt, completion in found["tokens"]:
            before = self.tokens.get(model, (0, 0))
            self.tokens[model] = (before[0] + int(prompt), before[1] + int(completion))


@dataclass(frozen=True)
class PeriodFigures:
    period: Period
    whole: Figures
    slots: list[Figures]

    @property
    def is_empty(self) -> bool:
        whole = self.whole
        return not (whole.chats or whole.messages or whole.memories_added or whole.receipts)


def period_chosen(request: HttpRequest, default: str) -> str:
    """Return the name of the period that a page's address asks for."""
    key = request.GET.get("period", default)
    return key if key in DAYS else default


def period_choices() -> list[tuple[str, str]]:
    """Return the names of the periods in addresses and on pages."""
    return [("today", _("Today")), ("7", _("7 days")), ("30", _("30 days"))]


def figures_of(period: Period) -> PeriodFigures:
    """Return all current figures of a period."""
    read = slots_read(period.borders)
    whole = Figures(period.start, period.end, chats=read.chats)
    slots = []
    for start, end, found in zip(period.borders, period.borders[1:], read.slots, strict=False):
        figures = Figures(start, end, chats=int(found["chats"]))
        slots.append(figures)
        for each in (figures, whole):
            each._add(found)
    return PeriodFigures(period, whole, slots)


# Formats figures in the language and time zone of the reader.


MINUTE, HOUR, DAY = 60, 3_600, 86_400


def count_shown(number: float) -> str:
    return number_format(number, force_grouping=True)


def mean_shown(number: float) -> str:
    """Return a mean, with one decimal where it is small and no whole number."""
    digits = 1 if number < 10 and round(number, 1) % 1 else 0
    return number_format(round(number, digits), digits, force_grouping=True)


def seconds_shown(seconds: float | None) -> str:
    """Return seconds with a fitting precision; a dash for None."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return _("%(seconds)s s") % {"seconds": number_format(seconds, 1)}
    if seconds < 2 * MINUTE:
        return _("%(seconds)s s") % {"seconds": number_format(seconds, 0)}
    if seconds < 2 * HOUR:
        minutes = round(seconds / MINUTE)
        return ngettext("%(number)s minute", "%(number)s minutes", minutes) % {"number": minutes}
    if seconds < 2 * DAY:
        hours = round(seconds / HOUR)
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    days = round(seconds / DAY)
    return ngettext("%(number)s day", "%(number)s days", days) % {"number": days}


def since_shown(since: datetime, *, now: datetime) -> str:
    return seconds_shown(max((now - since) / timedelta(seconds=1), 0.0))


def slot_shown(start: datetime, period: Period) -> str:
    """Return the name of a slot: an hour of today, or a day."""
    local = timezone.localtime(start)
    return date_format(local, "H:i" if period.is_hourly else "j M")
