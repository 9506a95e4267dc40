"""The days that a question names: "in May 2023", "on 13 October", "last week", "אתמול".

English and Hebrew. A month without a year means that month of any year.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

_MONTH_NAMES = (
    "january jan ינואר",
    "february feb פברואר",
    "march mar מרץ מרס",
    "april apr אפריל",
    "may מאי",
    "june jun יוני",
    "july jul יולי",
    "august aug אוגוסט",
    "september sept sep ספטמבר",
    "october oct אוקטובר",
    "november nov נובמבר",
    "december dec דצמבר",
)
_MONTHS = {
    name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names.split()
}
# These are also ordinary words, but then not capitalised.
_ALSO_WORDS = {"may", "march", "mar"}
_MONTH = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_DAY = r"(?P<{}>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?:of\s+|ב)?(?P<year>(?:19|20)\d\d))?"
_NAMED = re.compile(
    rf"(?<!\w)(?:{_DAY.format('before')}\s+(?:of\s+|ב|ל)?)?[בלמ]?(?P<month>{_MONTH})\b\.?"
    rf"(?:\s+{_DAY.format('after')}(?!\d|\w))?{_YEAR}",
    re.IGNORECASE,
)
_WRITTEN = re.compile(r"(?<!\d)((?:19|20)\d\d)-(\d\d?)-(\d\d?)(?!\d)")
_YEAR_ALONE = re.compile(r"(?<![\d-])((?:19|20)\d\d)(?![\d-])")
# (begin, end) in days before today, the end inclusive.
_RELATIVE = (
    (re.compile(r"\byesterday\b|(?<!\w)אתמול", re.IGNORECASE), (1, 1)),
    (re.compile(r"\b(?:today|this morning)\b|(?<!\w)היום", re.IGNORECASE), (0, 0)),
    (re.compile(r"\blast week\b|בשבוע שעבר", re.IGNORECASE), (14, 5)),
    (re.compile(r"\blast month\b|בחודש שעבר", re.IGNORECASE), (62, 20)),
)
_LAST_YEAR = re.compile(r"\blast year\b|בשנה שעברה", re.IGNORECASE)
_LAST = re.compile(r"\blast\s+$", re.IGNORECASE)

# An event is mentioned on its day, or within this many days after it.
MENTIONED_WITHIN = 14
_MENTIONED_LATER = 0.8


@dataclass(frozen=True)
class Period:
    """A period from ``first`` to ``last``, both days included. ``any_year``: of every year."""

    first: date
    last: date
    any_year: bool = False

    def fits(self, day: date) -> float:
        """Return how well a message of ``day`` may be about the period, in [0, 1].

        It is 1 within the period and falls until ``MENTIONED_WITHIN`` days after it.
        """
        if not self.any_year:
            return self._fits_in(day, 0)
        return max(self._fits_in(day, shift) for shift in (0, 1))

    def _fits_in(self, day: date, back: int) -> float:
        first, last = self.first, self.last
        if self.any_year:
            first, last = _in_year(first, day.year - back), _in_year(last, day.year - back)
        if first <= day <= last:
            return 1.0
        late = (day - last).days
        return (
            _MENTIONED_LATER * (1 - late / MENTIONED_WITHIN) if 0 < late < MENTIONED_WITHIN else 0.0
        )


def periods_asked(question: str, *, today: date) -> list[Period]:
    """Return the periods that a question names, those with a month first.

    A year by itself counts only if no month is named.
    """
    named = [
        period for match in _NAMED.finditer(question) if (period := _named(match, question, today))
    ]
    named += [
        Period(day, day) for match in _WRITTEN.finditer(question) if (day := _day(*match.groups()))
    ]
    for pattern, (begins, ends) in _RELATIVE:
        if pattern.search(question):
            named.append(Period(today - timedelta(days=begins), today - timedelta(days=ends)))
    if _LAST_YEAR.search(question):
        named.append(_whole_year(today.year - 1))
    if named:
        return named
    return [_whole_year(int(year)) for year in dict.fromkeys(_YEAR_ALONE.findall(question))]


def best_fit(periods: Sequence[Period], day: date) -> float:
    """Return how well a message of ``day`` fits the best of the periods, in [0, 1]."""
    return max((period.fits(day) for period in periods), default=0.0)


def _named(match: re.Match[str], question: str, today: date) -> Period | None:
    written = match["month"]
    if written.lower() in _ALSO_WORDS and not written[0].isupper():
        return None
    month = _MONTHS[written.lower()]
    day = match["before"] or match["after"]
    year = match["year"]
    if year is None and _LAST.search(question[: match.start("month")]):
        year = str(today.year if month < today.month else today.year - 1)
    first = date(int(year) if year else 2000, month, 1)
    last = _end_of_month(first)
    if day and 1 <= int(day) <= last.day:
        first = last = first.replace(day=int(day))
    return Period(first, last, any_year=year is None)


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _whole_year(year: int) -> Period:
    return Period(date(year, 1, 1), date(year, 12, 31))


def _end_of_month(first: date) -> date:
    return (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)


def _in_year(day: date, year: int) -> date:
    try:
        return day.replace(year=year)
    except ValueError:  # 29 February
        return date(year, 2, 28)
