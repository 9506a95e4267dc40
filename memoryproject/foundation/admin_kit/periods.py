"""Stretches of time in which staff look at figures and lists: today, seven days, thirty days, or
any other; always whole days or hours of the time zone in force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from datetime import timezone as zones

from django.utils import timezone

DAYS = {"today": 1, "7": 7, "30": 30}
TODAY = "today"


class UnknownSpanError(ValueError):
    """Such a stretch of time there isn't."""


@dataclass(frozen=True)
class Period:
    """From the first border up to the last; the slots between them are what a chart shows.
    ``key`` names it in an address."""

    key: str
    borders: tuple[datetime, ...]

    @property
    def start(self) -> datetime:
        return self.borders[0]

    @property
    def end(self) -> datetime:
        return self.borders[-1]

    @property
    def is_hourly(self) -> bool:
        return self.key == TODAY


def period_named(key: str, *, now: datetime) -> Period:
    """Today by the hour, or the last 7 or 30 days, today among them, by the day.
    Raises KeyError for another name."""
    zone = timezone.get_current_timezone()
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS[key] - 1)
    if key == TODAY:
        return Period(key, tuple(_hours(today, zone)))
    days = [first + timedelta(days=number) for number in range(DAYS[key] + 1)]
    return Period(key, tuple(_midnight(day, zone) for day in days))


def span_key(start: datetime, end: datetime) -> str:
    """The name of a stretch from here to there, for ``span_of``."""
    return f"{_written(start)}--{_written(end)}"


def span_of(key: str, *, now: datetime) -> tuple[datetime, datetime]:
    """The beginning and the end of a period or of a stretch of such a name.
    Raises UnknownSpanError for what is neither."""
    if key in DAYS:
        period = period_named(key, now=now)
        return period.start, period.end
    first, _, last = key.partition("--")
    try:
        start, end = (datetime.strptime(text, "%Y%m%dT%H%M%z") for text in (first, last))
    except ValueError:
        raise UnknownSpanError(key) from None
    # What can't be brought to another zone can't be looked for either.
    if not (1 < start.year < 9999 and 1 < end.year < 9999):
        raise UnknownSpanError(key)
    return start, end


def _written(moment: datetime) -> str:
    return moment.astimezone(zones.utc).strftime("%Y%m%dT%H%MZ")


def _midnight(day: date, zone: tzinfo) -> datetime:
    """When the day begins; where the clock jumps over midnight, that is when it jumps."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(zones.utc)


def _hours(day: date, zone: tzinfo) -> Iterator[datetime]:
    """The beginnings of a day's hours and its end: 23 to 25 hours, as the clock has it."""
    moment, end = _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
    while moment < end:
        yield moment
        moment += timedelta(hours=1)
    yield end
