"""Opening hours: one sentence for each weekday, and one for each date that is an exception."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo

from django.utils.translation import gettext as _

from memoryproject.foundation.text.characters import fold
from sessions_app.memories.tables import days
from sessions_app.memories.tables.columns import (
    Columns,
    Entry,
    RowProblemError,
    entry_refused,
    is_hebrew,
    with_note,
)
from sessions_app.memories.tables.days import Span
from sessions_app.memories.tables.read_table import Row

_CLOSED = {fold(each) for each in ("closed", "close", "סגור", "סגורה", "סגורים")}
_ROUND_THE_CLOCK = {fold(each) for each in ("24 hours", "24h", "24/7", "24 שעות", "24 שעות ביממה")}
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


@dataclass(frozen=True)
class _Words:
    """The parts of a sentence in one language."""

    weekdays: Sequence[str]
    months: Sequence[str]
    on_weekday: str
    on_date: str
    closed: str
    round_the_clock: str
    open: str
    times: str
    next_day: str
    between_times: str


_ENGLISH = _Words(
    weekdays=days.ENGLISH,
    months=days.ENGLISH_MONTHS,
    on_weekday="On {weekday}",
    on_date="On {weekday}, {day} {month} {year},",
    closed="we are closed",
    round_the_clock="we are open around the clock",
    open="we are open",
    times="from {start} to {end}",
    next_day=" the next day",
    between_times=" and ",
)
_HEBREW = _Words(
    weekdays=days.HEBREW,
    months=days.HEBREW_MONTHS,
    on_weekday="{weekday}",
    on_date="{weekday}, {day} ב{month} {year},",
    closed="אנחנו סגורים",
    round_the_clock="אנחנו פתוחים 24 שעות",
    open="אנחנו פתוחים",
    times="מ-{start} עד {end}",
    next_day=" למחרת",
    between_times=" ו",
)


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
        yield _entry(when, day, present_zone(now))


def present_zone(now: datetime) -> tzinfo:
    zone = now.tzinfo
    if zone is None:
        raise ValueError("The time has no zone.")
    return zone


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
    on = days.date_in(dated or named)
    if on is not None:
        if on < today:
            raise RowProblemError(_("This day is over."))
        return [on]
    weekdays = None if dated else days.days_in(named)
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
        return [Span(0, days.MIDNIGHT)], False, note
    if not given:
        if fold(note) in _CLOSED:
            return [], True, ""
        raise RowProblemError(_("It has neither times nor “closed”."))
    if "hours" in given:
        spans = days.spans_in(given["hours"])
        if spans is None or len(given) > 1:
            raise _not_times(columns, "hours", given["hours"])
        return spans, False, note
    for name in ("opens", "closes"):
        if name not in given:
            text = _("Column “%(column)s” is empty.") % {"column": columns.called(name)}
            raise RowProblemError(text)
        if days.minutes_in(given[name]) is None:
            raise _not_times(columns, name, given[name])
    span = days.span_of(given["opens"], given["closes"])
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
        subject = f"opening hours {days.ENGLISH[when]} {language}"
    text = with_note(_sentence(when, day), "; ".join(day.notes))
    return Entry(tuple(day.rows), text, subject, ends, day.problem)


def _sentence(when: When, day: _Day) -> str:
    words = _HEBREW if day.hebrew else _ENGLISH
    if isinstance(when, date):
        on = words.on_date.format(
            weekday=words.weekdays[when.isoweekday() % 7],
            day=when.day,
            month=words.months[when.month - 1],
            year=when.year,
        )
    else:
        on = words.on_weekday.format(weekday=words.weekdays[when])
    if day.closed:
        return f"{on} {words.closed}"
    if any(span.is_whole_day for span in day.spans):
        return f"{on} {words.round_the_clock}"
    times = words.between_times.join(
        words.times.format(start=days.clock(span.start), end=days.clock(span.end))
        + (words.next_day if span.end > days.MIDNIGHT else "")
        for span in sorted(day.spans)
    )
    return f"{on} {words.open} {times}"
