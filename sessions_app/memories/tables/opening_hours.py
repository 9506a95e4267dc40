"""Opening hours: one sentence for each weekday, and one for each date that is an exception.

Weekdays, dates and times are read as people write them, in English and Hebrew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.text.characters import fold
from sessions_app.memories.tables.columns import (
    Columns,
    Entry,
    Row,
    RowProblemError,
    entry_refused,
    is_hebrew,
    with_note,
)

# In English and Hebrew: the weekdays, of which Sunday is the first, the months, and what cells say.
_WORDS: Mapping[str, Any] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
ENGLISH, HEBREW = _WORDS["days"]["en"], _WORDS["days"]["he"]
ENGLISH_MONTHS, HEBREW_MONTHS = _WORDS["months"]["en"], _WORDS["months"]["he"]
_DAYS = {fold(each): day for day, names in enumerate(_WORDS["spellings"]) for each in names.split()}
_ALWAYS, _CLOSED, _ROUND_THE_CLOCK = (
    set(map(fold, _WORDS[name])) for name in ("always", "closed", "round_the_clock")
)
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
_EMPTY = {"", "-", "–", "—"}

When = int | date


@dataclass
class _Day:
    """The opening hours of a weekday or a date, from the rows."""

    rows: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    closed: bool = False
    hebrew: bool = False
    problem: str = ""


def hours_entries(columns: Columns, *, now: datetime) -> Iterator[Entry]:
    """Yield the sentences, in the order of the rows; those of several rows once.

    now: with the business's time zone. Exceptions end after their day.
    """
    found: dict[When, _Day] = {}
    for row in columns.rows:
        try:
            _add_row(found, columns, row, now.date())
        except RowProblemError as problem:
            yield entry_refused(row, problem)
    for when, day in found.items():
        yield _entry(when, day, present(now.tzinfo))


def _add_row(found: dict[When, _Day], columns: Columns, row: Row, today: date) -> None:
    whens = _whens(columns, row, today)
    spans, closed, note = _spans(columns, row)
    for when in whens:
        day = found.setdefault(when, _Day())
        if day.rows and (closed or day.closed):
            day.problem = _("It is said to be closed and open.")
        elif any(span.overlaps(other) for span in spans for other in day.spans):
            day.problem = _("Its times overlap.")
        day.rows.append(row.number)
        day.spans += spans
        day.closed |= closed
        day.notes += [note] if note and note not in day.notes else []
        day.hebrew |= is_hebrew(*columns.headers, *row.cells)


def _whens(columns: Columns, row: Row, today: date) -> list[When]:
    """Return the weekdays or the date of a row."""
    named, dated = columns.cell(row, "day"), columns.cell(row, "date")
    column = "date" if dated else "day"
    on = date_in(dated or named)
    if on is not None:
        if on < today:
            raise RowProblemError(_("This day is over."))
        return [on]
    weekdays = None if dated else days_in(named)
    if weekdays is None:
        if not dated and not named:
            raise RowProblemError(_("It names no day."))
        text = _(
            "Column “%(column)s”: “%(cell)s” is no weekday and no date. Write Sunday, Sun–Thu, or "
            "24/12/2026."
        )
        raise RowProblemError(text % {"column": columns.called(column), "cell": dated or named})
    return list(weekdays)


def _spans(columns: Columns, row: Row) -> tuple[list[Span], bool, str]:
    """Return the times of a row, whether it says "closed", and its note."""
    cells = {name: columns.cell(row, name) for name in ("opens", "closes", "hours")}
    note = columns.cell(row, "note")
    given = {name: text for name, text in cells.items() if text not in _EMPTY}
    words = {fold(text) for text in given.values()}
    if words & _CLOSED:
        if words - _CLOSED:
            raise RowProblemError(_("It is said to be closed and open."))
        return [], True, note
    if words and words <= _ROUND_THE_CLOCK:
        return [Span(0, MIDNIGHT)], False, note
    if not given:
        if fold(note) in _CLOSED:
            return [], True, ""
        raise RowProblemError(_("It has neither times nor “closed”."))
    if "hours" in given:
        spans = spans_in(given["hours"])
        if spans is None or len(given) > 1:
            raise _not_times(columns, "hours", given["hours"])
        return spans, False, note
    for name in ("opens", "closes"):
        if name not in given:
            text = _("Column “%(column)s” is empty.") % {"column": columns.called(name)}
            raise RowProblemError(text)
        if minutes_in(given[name]) is None:
            raise _not_times(columns, name, given[name])
    span = span_of(given["opens"], given["closes"])
    if span is None:
        raise RowProblemError(_("It opens and closes at the same time."))
    return [span], False, note


def _not_times(columns: Columns, name: str, cell: str) -> RowProblemError:
    text = _("Column “%(column)s”: “%(cell)s” is no time. Write 8:00, 20:30, or “closed”.")
    return RowProblemError(text % {"column": columns.called(name), "cell": cell})


def _entry(when: When, day: _Day, zone: tzinfo) -> Entry:
    ends = None
    # A business may tell them in both languages: neither table replaces the other.
    language = "Hebrew" if day.hebrew else "English"
    if isinstance(when, date):
        ends = datetime.combine(when + timedelta(days=1), time(), zone)
        subject = f"opening hours {when.isoformat()} {language}"
    else:
        subject = f"opening hours {ENGLISH[when]} {language}"
    text = with_note(_sentence(when, day), "; ".join(day.notes))
    return Entry(tuple(day.rows), text, subject, ends, day.problem)


def _sentence(when: When, day: _Day) -> str:
    """Return the sentence in the language of the table, without its full stop."""
    weekday = when.isoweekday() % 7 if isinstance(when, date) else when
    is_whole_day = any(span.is_whole_day for span in day.spans)
    spans = [
        (clock(span.start), clock(span.end), span.end > MIDNIGHT) for span in sorted(day.spans)
    ]
    if day.hebrew:
        on = HEBREW[weekday]
        if isinstance(when, date):
            on += f", {when.day} ב{HEBREW_MONTHS[when.month - 1]} {when.year},"
        times = " ו".join(
            f"מ-{start} עד {end}{' למחרת' if is_next_day else ''}"
            for start, end, is_next_day in spans
        )
        hours = "אנחנו פתוחים 24 שעות" if is_whole_day else f"אנחנו פתוחים {times}"
        return f"{on} {'אנחנו סגורים' if day.closed else hours}"
    on = f"On {ENGLISH[weekday]}"
    if isinstance(when, date):
        on += f", {when.day} {ENGLISH_MONTHS[when.month - 1]} {when.year},"
    times = " and ".join(
        f"from {start} to {end}{' the next day' if is_next_day else ''}"
        for start, end, is_next_day in spans
    )
    hours = "we are open around the clock" if is_whole_day else f"we are open {times}"
    return f"{on} {'we are closed' if day.closed else hours}"


# The weekdays, dates and times of cells.


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
