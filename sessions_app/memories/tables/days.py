"""Weekdays, dates and times as people write them in tables, in English and Hebrew."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import MAXYEAR, date

from memoryproject.foundation.text.characters import fold

# Sunday is the first day, as in Hebrew.
ENGLISH = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
HEBREW = ("ביום ראשון", "ביום שני", "ביום שלישי", "ביום רביעי", "ביום חמישי", "ביום שישי", "בשבת")
ENGLISH_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
HEBREW_MONTHS = (
    *("ינואר", "פברואר", "מרץ", "אפריל", "מאי", "יוני"),
    *("יולי", "אוגוסט", "ספטמבר", "אוקטובר", "נובמבר", "דצמבר"),
)
_SPELLINGS = (
    "sunday sun su ראשון א",
    "monday mon mo שני ב",
    "tuesday tues tue tu שלישי ג",
    "wednesday wed we רביעי ד",
    "thursday thurs thur thu th חמישי ה",
    "friday fri fr שישי ו",
    "saturday sat sa shabbat שבת ש",
)
_DAYS = {fold(each): day for day, names in enumerate(_SPELLINGS) for each in names.split()}
_ALWAYS = {
    fold(each)
    for each in ("every day", "daily", "all days", "all week", "כל יום", "כל הימים", "כל השבוע")
}
_MARKS = re.compile("[.'\"׳״’‘]")
_HEBREW_LEAD = re.compile(r"^(?:ה?ימימ|ביומ|יומ|בימימ)\s+")
_PLURAL = re.compile(r"days$")
_LIST = re.compile(r"[,;/&+]|\band\b|(?<=\s)ו(?=[א-ת]{3})")
_RANGE = re.compile(r"[-–—־]|\b(?:to|till|until|through|thru)\b|(?<=\s)עד(?=\s)")
_SPANS = re.compile(r"[,;/&+\n]|\band\b")
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[ T]0?0:00(?::00)?)?")
_DAY_FIRST = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})(?: 0?0:00(?::00)?)?")
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d{2}))?(?::\d{2})?\s*(?:([ap])\.?\s?m\.?)?", re.IGNORECASE)
MIDNIGHT = 24 * 60


def days_in(text: str) -> list[int] | None:
    """Return the weekdays that a cell names, from 0 for Sunday; None where it names none."""
    plain = _MARKS.sub("", fold(text)).strip()
    if plain in _ALWAYS:
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

    def overlaps(self, other: Span) -> bool:
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
