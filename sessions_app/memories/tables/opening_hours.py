"""Opening hours: one sentence for each weekday, and one for each date that is an exception.

Weekdays, dates and times are read as people write them, in English and Hebrew.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo

from django.utils.translation import gettext as _

from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.text.characters import fold
from sessions_app import hours as opening
from sessions_app.memories.tables import columns as table

ENGLISH, HEBREW = opening.WORDS["days"]["en"], opening.WORDS["days"]["he"]
ENGLISH_MONTHS, HEBREW_MONTHS = opening.WORDS["months"]["en"], opening.WORDS["months"]["he"]
_EMPTY = {"", "-", "–", "—"}

When = int | date


@dataclass
class _Day:
    """The opening hours of a weekday or a date, from the rows."""

    rows: list[int] = field(default_factory=list)
    spans: list[opening.Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    closed: bool = False
    hebrew: bool = False
    problem: str = ""


def hours_entries(columns: table.Columns, *, now: datetime) -> Iterator[table.Entry]:
    """Yield the sentences, in the order of the rows; those of several rows once.

    now: with the business's time zone. Exceptions end after their day.
    """
    found: dict[When, _Day] = {}
    for row in columns.rows:
        try:
            _add_row(found, columns, row, now.date())
        except table.RowProblemError as problem:
            yield table.entry_refused(row, problem)
    for when, day in found.items():
        yield _entry(when, day, present(now.tzinfo))


def _add_row(found: dict[When, _Day], columns: table.Columns, row: table.Row, today: date) -> None:
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
        day.hebrew |= table.is_hebrew(*columns.headers, *row.cells)


def _whens(columns: table.Columns, row: table.Row, today: date) -> list[When]:
    """Return the weekdays or the date of a row."""
    named, dated = columns.cell(row, "day"), columns.cell(row, "date")
    column = "date" if dated else "day"
    on = opening.date_in(dated or named)
    if on is not None:
        if on < today:
            raise table.RowProblemError(_("This day is over."))
        return [on]
    weekdays = None if dated else opening.days_in(named)
    if weekdays is None:
        if not dated and not named:
            raise table.RowProblemError(_("It names no day."))
        text = _(
            "Column “%(column)s”: “%(cell)s” is no weekday and no date. Write Sunday, Sun–Thu, or "
            "24/12/2026."
        )
        raise table.RowProblemError(
            text % {"column": columns.called(column), "cell": dated or named}
        )
    return list(weekdays)


def _spans(columns: table.Columns, row: table.Row) -> tuple[list[opening.Span], bool, str]:
    """Return the times of a row, whether it says "closed", and its note."""
    cells = {name: columns.cell(row, name) for name in ("opens", "closes", "hours")}
    note = columns.cell(row, "note")
    given = {name: text for name, text in cells.items() if text not in _EMPTY}
    words = {fold(text) for text in given.values()}
    if words & opening.CLOSED:
        if words - opening.CLOSED:
            raise table.RowProblemError(_("It is said to be closed and open."))
        return [], True, note
    if words and words <= opening.ROUND_THE_CLOCK:
        return [opening.Span(0, opening.MIDNIGHT)], False, note
    if not given:
        if fold(note) in opening.CLOSED:
            return [], True, ""
        raise table.RowProblemError(_("It has neither times nor “closed”."))
    if "hours" in given:
        spans = opening.spans_in(given["hours"])
        if spans is None or len(given) > 1:
            raise _not_times(columns, "hours", given["hours"])
        return spans, False, note
    for name in ("opens", "closes"):
        if name not in given:
            text = _("Column “%(column)s” is empty.") % {"column": columns.called(name)}
            raise table.RowProblemError(text)
        if opening.minutes_in(given[name]) is None:
            raise _not_times(columns, name, given[name])
    span = opening.span_of(given["opens"], given["closes"])
    if span is None:
        raise table.RowProblemError(_("It opens and closes at the same time."))
    return [span], False, note


def _not_times(columns: table.Columns, name: str, cell: str) -> table.RowProblemError:
    text = _("Column “%(column)s”: “%(cell)s” is no time. Write 8:00, 20:30, or “closed”.")
    return table.RowProblemError(text % {"column": columns.called(name), "cell": cell})


def _entry(when: When, day: _Day, zone: tzinfo) -> table.Entry:
    ends = None
    # A business may tell them in both languages: neither table replaces the other.
    language = "Hebrew" if day.hebrew else "English"
    if isinstance(when, date):
        ends = datetime.combine(when + timedelta(days=1), time(), zone)
        subject = f"opening hours {when.isoformat()} {language}"
    else:
        subject = f"opening hours {ENGLISH[when]} {language}"
    text = table.with_note(_sentence(when, day), "; ".join(day.notes))
    return table.Entry(tuple(day.rows), text, subject, ends, day.problem)


def _sentence(when: When, day: _Day) -> str:
    """Return the sentence in the language of the table, without its full stop."""
    weekday = when.isoweekday() % 7 if isinstance(when, date) else when
    is_whole_day = any(span.is_whole_day for span in day.spans)
    spans = [
        (opening.clock(span.start), opening.clock(span.end), span.end > opening.MIDNIGHT)
        for span in sorted(day.spans)
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
