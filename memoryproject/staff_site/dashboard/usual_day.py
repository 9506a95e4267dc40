"""The usual figures of a weekday until this time, to compare today with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from django.db.models import Min, Q, Sum
from django.utils import timezone

from memoryproject.staff_site.models import Quarter

NAMES = ("answers", "held", "failed", "missed", "unknown", "rated_good", "rated_bad")
WEEKS = 4


@dataclass(frozen=True)
class Usual:
    """The mean of each figure. ``days``: how many days it is of; 0 if nothing can be compared.

    ``is_yesterday``: the figures are those of yesterday, as no such weekday is known yet.
    """

    days: int = 0
    is_yesterday: bool = False
    means: Mapping[str, float] = field(default_factory=dict)


def usual_until(now: datetime) -> Usual:
    """Return what the last four same weekdays had until this time of the day; else yesterday.

    Days of the active time zone. Only days count since the first one of these weeks of which
    anything is known. The stored quarters are read, in one query: what changed in the last minute
    isn't compared.
    """
    local = timezone.localtime(now)
    weekdays = [local.date() - timedelta(weeks=week) for week in range(1, WEEKS + 1)]
    yesterday = local.date() - timedelta(days=1)
    weeks = Quarter.objects.filter(starts_at__gte=_midnight(weekdays[-1], local))
    found = weeks.aggregate(
        first=Min("starts_at"),
        **{f"week_{name}": Sum(name, filter=_until(weekdays, local)) for name in NAMES},
        **{f"day_{name}": Sum(name, filter=_until([yesterday], local)) for name in NAMES},
    )
    if found["first"] is None:
        return Usual()
    first = timezone.localtime(found["first"]).date()
    known = sum(day >= first for day in weekdays)
    if known:
        return Usual(known, means={name: (found[f"week_{name}"] or 0) / known for name in NAMES})
    if yesterday >= first:
        means = {name: float(found[f"day_{name}"] or 0) for name in NAMES}
        return Usual(1, is_yesterday=True, means=means)
    return Usual()


def _midnight(day: date, local: datetime) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=local.tzinfo)


def _until(days: Sequence[date], local: datetime) -> Q:
    """Match the quarters of these days that began before this time of the day."""
    within = Q()
    for day in days:
        until = datetime.combine(day, local.time(), local.tzinfo)
        within |= Q(starts_at__gte=_midnight(day, local), starts_at__lt=until)
    return within
