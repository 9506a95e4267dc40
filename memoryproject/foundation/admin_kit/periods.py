"""Periods for figures and lists: today, 7 days, 30 days, or any other time span.

They are always whole days or hours of the active time zone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from datetime import timezone as zones

from django.utils import timezone
from django.utils.translation import gettext_lazy

DAYS = {"today": 1, "7": 7, "30": 30}
TODAY = "today"
NAMES = {TODAY: gettext_lazy("Today"), "7": gettext_lazy("7 days"), "30": gettext_lazy("30 days")}
PAST_NAMES = {
    TODAY: gettext_lazy("Today"),
    "7": gettext_lazy("Past 7 days"),
    "30": gettext_lazy("Past 30 days"),
}
# In the address of a list that shows what was counted in a period.
PARAMETER = "when"


class UnknownSpanError(ValueError):
    """The name is not a known time span."""


@dataclass(frozen=True)
class Period:
    """A period from the first border up to the last.

    The slots between the borders are the points of a chart. ``key`` is its name in a URL.
    """

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
    """Return today by hours, or the last 7 or 30 days by days, including today.

    Raises KeyError for another name.
    """
    zone = timezone.get_current_timezone()
    today = now.astimezone(zone).date()
    first = today - timedelta(days=DAYS[key] - 1)
    if key == TODAY:
        return Period(key, tuple(_hours(today, zone)))
    days = [first + timedelta(days=number) for number in range(DAYS[key] + 1)]
    return Period(key, tuple(_midnight(day, zone) for day in days))


def span_key(start: datetime, end: datetime) -> str:
    """Return the name of a time span, for ``span_of``."""
    return f"{_written(start)}--{_written(end)}"


def span_of(key: str, *, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning and the end of a named period or time span.

    Raises UnknownSpanError for any other name.
    """
    if key in DAYS:
        period = period_named(key, now=now)
        return period.start, period.end
    first, _, last = key.partition("--")
    try:
        start, end = (datetime.strptime(text, "%Y%m%dT%H%M%z") for text in (first, last))
    except ValueError:
        raise UnknownSpanError(key) from None
    # A time that can't be converted to another zone can't be used in a query either.
    if not (1 < start.year < 9999 and 1 < end.year < 9999):
        raise UnknownSpanError(key)
    return start, end


def _written(moment: datetime) -> str:
    return moment.astimezone(zones.utc).strftime("%Y%m%dT%H%MZ")


def _midnight(day: date, zone: tzinfo) -> datetime:
    """Return the time at which the day begins.

    If the clock jumps over midnight, it is the time of the jump.
    """
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(zones.utc)


def _hours(day: date, zone: tzinfo) -> Iterator[datetime]:
    """Yield the beginnings of a day's hours and its end. A day has 23 to 25 hours."""
    moment, end = _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
    while moment < end:
        yield moment
        moment += timedelta(hours=1)
    yield end
