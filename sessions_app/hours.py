"""Opening hours: read the times that people write, and say when the business is open.

Weekdays, dates and times are read in English and Hebrew.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import MAXYEAR, date, datetime, time, timedelta, timezone
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import dates, translation

from memoryproject.foundation.text.characters import fold
from sessions_app.conversations.phrases import FOLDER, TEXTS, languages, words_of
from sessions_app.models import AssistantProfile

# In English and Hebrew: the weekdays, of which Sunday is the first, the months, and what cells say.
WORDS: Mapping[str, Any] = json.loads(
    (FOLDER.parent / "opening_hours.json").read_text(encoding="utf-8")
)
_DAYS = {fold(each): day for day, names in enumerate(WORDS["spellings"]) for each in names.split()}
ALWAYS, CLOSED, ROUND_THE_CLOCK = (
    set(map(fold, WORDS[name])) for name in ("always", "closed", "round_the_clock")
)
WEEKDAYS = tuple(name.casefold() for name in WORDS["days"]["en"])
_MARKS = re.compile("[.'\"׳״’‘]")
_HEBREW_LEAD = re.compile(r"^(?:ה?ימימ|ביומ|יומ|בימימ)\s+")
_PLURAL = re.compile(r"days$")
_LIST = re.compile(r"[,;/&+]|\band\b|(?<=\s)ו(?=[א-ת]{3})")
_RANGE = re.compile(r"[-–—־]|\b(?:to|till|until|through|thru)\b|(?<=\s)עד(?=\s)")
_SPANS = re.compile(r"[,;/&+\n]|\band\b")
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[ T]0?0:00(?::00)?)?")
_DAY_FIRST = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})(?: 0?0:00(?::00)?)?")
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?(?::\d{2})?\s*(?:([ap])\.?\s?m\.?)?", re.IGNORECASE)
_HALVES = re.compile(r"[ap]\.?\s?m")
_DATED = re.compile(
    r"(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})(?:\s?[-–—]\s?(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}))?[:,]?\s(.+)"
)
# In Hebrew these letters before a word are "on", "to" and "the".
_HEBREW_PREFIXES = ("ב", "ל", "ה", "בה")
MIN_STEM = 4
MIDNIGHT = 24 * 60
# The longest holiday, and how far the next opening is looked for.
MAX_DAYS = 366
# How far back a closed period begins at most.
MAX_CLOSED = 60
# Over midnight. "9-5" is longer: it hardly means until five in the morning.
MAX_NIGHT = 16 * 60


@dataclass(frozen=True)
class OtherDay:
    """The hours of a date that differ from those of its weekday; without spans it is closed."""

    spans: "tuple[Span, ...]" = ()
    name: str = ""


@dataclass(frozen=True)
class Hours:
    """The opening hours by the business's own clock. ``week``: the spans from Sunday on."""

    week: "tuple[tuple[Span, ...], ...]"
    zone: ZoneInfo
    dates: Mapping[date, OtherDay] = field(default_factory=dict)

    def on(self, day: date) -> "tuple[Span, ...]":
        other = self.dates.get(day)
        return other.spans if other is not None else self.week[day.isoweekday() % 7]

    def day_of(self, now: datetime) -> date:
        """Return the day by whose hours the business works: after midnight, perhaps yesterday."""
        today = now.astimezone(self.zone).date()
        yesterday = today - timedelta(days=1)
        late = any(start <= now < end for start, end in self._periods(yesterday, 1))
        early = any(start <= now < end for start, end in self._periods(today, 1))
        return yesterday if late and not early else today

    def is_open(self, now: datetime) -> bool:
        yesterday = now.astimezone(self.zone).date() - timedelta(days=1)
        return any(start <= now < end for start, end in self._periods(yesterday, 2))

    def opens_at(self, now: datetime) -> datetime | None:
        """Return when it opens next, after now; None where it doesn't within a year."""
        starts = (
            start for start, _end in self._periods(now.astimezone(self.zone).date(), MAX_DAYS)
        )
        return next((start.astimezone(self.zone) for start in starts if start > now), None)

    def closed_since(self, now: datetime) -> datetime | None:
        """Return when it was closed last; None while it is open, and where that is long ago."""
        first = now.astimezone(self.zone).date() - timedelta(days=MAX_CLOSED)
        ends = [end for _start, end in self._periods(first, MAX_CLOSED + 1) if end <= now]
        return None if self.is_open(now) else max(ends, default=None)

    def _periods(self, first: date, days: int) -> Iterator[tuple[datetime, datetime]]:
        for day in (first + timedelta(days=step) for step in range(days)):
            for span in sorted(self.on(day)):
                yield self._at(day, span.start), self._at(day, span.end)

    def _at(self, day: date, minutes: int) -> datetime:
        # In UTC: times of one zone are compared without their difference from it.
        local = datetime.combine(day, time(), self.zone) + timedelta(minutes=minutes)
        return local.astimezone(timezone.utc)


def hours_of(profile: AssistantProfile) -> Hours | None:
    """Return the opening hours that staff have set; None where they have set none."""
    texts: Mapping[str, str] = profile.hours
    if not any(texts.get(name) for name in (*WEEKDAYS, "dates")):
        return None
    return Hours(
        week=tuple(tuple(day_spans(texts.get(name, "")) or ()) for name in WEEKDAYS),
        zone=ZoneInfo(settings.BUSINESS_TIME_ZONE),
        dates=other_days(texts.get("dates", "")),
    )


def day_spans(text: str) -> "list[Span] | None":
    """Return the spans of "9:00-12:00, 16:00-19:00", none for "closed" or nothing.

    None where the text says no times, or times that overlap.
    """
    plain = fold(text.strip())
    if not plain or plain in CLOSED:
        return []
    if plain in ROUND_THE_CLOCK:
        return [Span(0, MIDNIGHT)]
    spans = spans_in(plain)
    if spans is None or any(a is not b and a.overlaps(b) for a in spans for b in spans):
        return None
    nights = [span for span in spans if span.end > MIDNIGHT]
    if not _HALVES.search(plain) and any(s.end - s.start > MAX_NIGHT for s in nights):
        return None
    return sorted(spans)


def other_days(text: str) -> dict[date, OtherDay]:
    """Return the days of lines such as "24/12/2026 9:00-13:00 Christmas Eve".

    A line may name a range of days: "24/12/2026-26/12/2026 closed". Raises ValueError with the
    first line that can't be read.
    """
    return {day: other for _line, days in _days_by_line(text) for day, other in days.items()}


def line_twice(text: str) -> str:
    """Return the first line with a date of an earlier one, "" for none. Raises ValueError."""
    seen: set[date] = set()
    for line, days in _days_by_line(text):
        if not seen.isdisjoint(days):
            return line
        seen |= days.keys()
    return ""


def _days_by_line(text: str) -> Iterator[tuple[str, dict[date, OtherDay]]]:
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = _DATED.fullmatch(line)
        first = date_in(parts[1]) if parts else None
        last = date_in(parts[2]) if parts and parts[2] else first
        other = _other_day(parts[3].split()) if parts else None
        if first is None or last is None or other is None:
            raise ValueError(line)
        days = (last - first).days + 1
        if not 1 <= days <= MAX_DAYS:
            raise ValueError(line)
        yield line, {first + timedelta(days=step): other for step in range(days)}


def _other_day(words: list[str]) -> OtherDay | None:
    """Return what the words say: times, and then the name of the day."""
    for size in range(len(words), 0, -1):
        spans = day_spans(" ".join(words[:size]))
        if spans is not None:
            return OtherDay(tuple(spans), " ".join(words[size:]))
    return None


# The weekdays, dates and times of cells.


def days_in(text: str) -> list[int] | None:
    """Return the weekdays that a cell names, from 0 for Sunday; None where it names none."""
    plain = _MARKS.sub("", fold(text)).strip()
    if plain in ALWAYS:
        return list(range(7))
    plain = _HEBREW_LEAD.sub("", plain)
    days: list[int] = []
    for part in _LIST.split(plain):
        ends = [_day(each.strip()) for each in _RANGE.split(part)]
        if not 1 <= len(ends) <= 2 or None in ends:
            return None
        first, last = int(ends[0] or 0), int(ends[-1] or 0)
        days += [(first + step) % 7 for step in range((last - first) % 7 + 1)]
    return list(dict.fromkeys(days))


def _day(text: str) -> int | None:
    word = _HEBREW_LEAD.sub("", text.strip())
    return _DAYS.get(word, _DAYS.get(_PLURAL.sub("day", word)))


def date_in(text: str) -> date | None:
    """Return the date that a cell holds, the day before the month; None where it holds none."""
    found = _ISO.fullmatch(text)
    if found:
        year, month, day = (int(each) for each in found.groups())
    else:
        found = _DAY_FIRST.fullmatch(text)
        if not found:
            return None
        day, month, year = (int(each) for each in found.groups())
        year += 2000 if year < 100 else 0
    try:
        # A memory of the last year's last day would end after all dates.
        return date(year, month, day) if year < MAXYEAR else None
    except ValueError:
        return None


@dataclass(frozen=True, order=True)
class Span:
    """A time of the day, in minutes from midnight. The end may be after the next midnight."""

    start: int
    end: int

    @property
    def is_whole_day(self) -> bool:
        return self.start == 0 and self.end == MIDNIGHT

    def overlaps(self, other: "Span") -> bool:
        return self.start < other.end and other.start < self.end


def minutes_in(text: str) -> int | None:
    """Return the minutes from midnight of a time such as 8, 8:30, 8.30 pm or 20:30:00."""
    found = _CLOCK.fullmatch(text.strip())
    if not found:
        return None
    hour, minutes, half = int(found[1]), int(found[2] or 0), (found[3] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    whole = hour * 60 + minutes
    return whole if minutes < 60 and whole <= MIDNIGHT else None


def span_of(opens: str, closes: str) -> Span | None:
    """Return the span between two times; None where there is none."""
    start, end = minutes_in(opens), minutes_in(closes)
    if start is None or end is None or start in (end, MIDNIGHT):
        return None
    return Span(start, end if end > start else end + MIDNIGHT)


def spans_in(text: str) -> list[Span] | None:
    """Return the spans of a cell such as "8:00-12:00, 16:00-19:00"; None where there are none."""
    spans = []
    for part in _SPANS.split(text):
        ends = [each.strip() for each in _RANGE.split(part)]
        span = span_of(*ends) if len(ends) == 2 else None
        if span is None:
            return None
        spans.append(span)
    return spans


def clock(minutes: int) -> str:
    minutes %= MIDNIGHT
    return f"{minutes // 60}:{minutes % 60:02}"


def tells_hours(content: str) -> bool:
    """Return whether a memory's text is one of those by which recall finds the hours."""
    return any(
        content.startswith(text.partition("{")[0]) for text in TEXTS["handover_hours"].values()
    )


# The names of weekdays, months and holidays in all languages, as people write them.


def day_or_month(word: str, part: int, language: str) -> int | None:
    """Return the weekday (``part`` 0) or the month (1), also by its name in another language."""
    named = number_named(word, calendar_words(language)[:2][part], language)
    if named is not None or len(word) < MIN_STEM:
        return named
    spoken = (calendar_words(code)[:2][part].get(word) for code in languages())
    return next(filter(None, spoken), None)


@cache
def holidays() -> list[tuple[Any, ...]]:
    """Return the date of each holiday, such as "12-25" or "", and its names as words."""
    return [
        (day, *(tuple(word.text for word in words_of(name)) for name in names))
        for day, *names in WORDS["holidays"]
    ]


def number_named(word: str, names: Mapping[str, int], language: str) -> int | None:
    """Return what a word names, in any of its forms: they differ in their ends."""
    forms = [word]
    if language == "he":
        forms += [word.removeprefix(prefix) for prefix in _HEBREW_PREFIXES]
    for form in forms:
        if form in names:
            return names[form]
        for name, number in names.items():
            is_near = abs(len(form) - len(name)) <= 2 and len(name) >= MIN_STEM
            if is_near and form[: len(name) - 1] == name[:-1]:
                return number
    return None


@cache
def calendar_words(language: str) -> tuple[Mapping[str, int], Mapping[str, int], frozenset[str]]:
    """Return the weekdays and months by name, and the words that are a part of their names."""
    weekdays: dict[str, int] = {}
    months: dict[str, int] = {}
    others: set[str] = set()
    with translation.override(language):
        of_week = [*dates.WEEKDAYS_ABBR.items(), *dates.WEEKDAYS.items()]
        days = [(day + 1, name) for day, name in of_week]
        of_year = [*dates.MONTHS_3.items(), *dates.MONTHS_ALT.items(), *dates.MONTHS.items()]
        for names, pairs in ((weekdays, days), (months, of_year)):
            for number, name in pairs:
                parts = sorted((word.text for word in words_of(str(name))), key=len, reverse=True)
                # Short forms of other scripts are single letters, which are words of their own.
                if parts and len(parts[0]) > 2:
                    names[parts[0]] = number
                others.update(parts[1:])
    spoken = languages()[language].get("weekday_names", {})
    weekdays |= {words_of(name)[0].text: number for name, number in spoken.items()}
    return weekdays, months, frozenset(others)


def numeric_date(text: str, today: date) -> date | None:
    """Return the date of 24/12, 24.12.26 or 2026-12-24; without a year it is the next one."""
    parts = re.split(r"[-/.]", text)
    if len(parts) == 3:
        return date_in(text)
    day, month = int(parts[0]), int(parts[1])
    if month > 12 and "/" in text:
        day, month = month, day
    return next_date(day, month, today)


def next_date(day: int, month: int, today: date) -> date | None:
    """Return the next such day of the month, today or later; None where there is none."""
    for year in range(today.year, today.year + 5):
        with suppress(ValueError):
            if (found := date(year, month, day)) >= today:
                return found
    return None
