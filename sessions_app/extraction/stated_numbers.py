"""Check that the numbers, times and dates of a fact stand in its clause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from django.utils.dates import MONTHS, MONTHS_ALT, WEEKDAYS
from django.utils.translation import override

from memoryproject.foundation.text.characters import fold
from sessions_app.extraction import statement_words as lexicon
from sessions_app.extraction.passage import without_marks, words_of

_LANGUAGES = ("en", "he", "es", "pt", "ar", "ru")
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DAY = re.compile(r"(?<![\d./-])(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?!\d)")
_CLOCK = re.compile(
    r"(?<![\d.,:])(\d{1,2})(?::(\d\d))?\s?(a\.?m|p\.?m)\b|(?<![\d.,:])(\d{1,2}):(\d\d)(?!\d)",
    re.IGNORECASE,
)
_GROUP = "[,.'’٬ \u00a0\u202f]"
_NUMBER = re.compile(
    rf"\d{{1,3}}({_GROUP})\d{{3}}(?:\1\d{{3}})*(?!\d)(?:[.,٫]\d{{1,2}}(?!\d))?"
    r"|\d+(?:[.,/٫]\d+)*"
)
_PHONE = re.compile(r"\d(?:[ \u00a0()./-]{0,2}\d){6,18}")
_THOUSAND = re.compile(r"\s?(?:k\b|thousand|אלף|אלפים|mil\b|тысяч|тыс|ألف|الف|آلاف)", re.IGNORECASE)
_RELATIVE = {
    fold(word): days
    for days, words in (
        (-1, "yesterday אתמול ayer ontem أمس امبارح вчера"),
        (0, "today tonight היום הערב הלילה hoy hoje اليوم сегодня"),
        (1, "tomorrow מחר mañana amanhã غدا بكرة بكرا завтра"),
        (2, "מחרתיים послезавтра"),
    )
    for word in words.split()
}
# A year that isn't stated is the one around the message.
_YEAR, _TWO_MONTHS, _TWO_WEEKS = 366, 62, 14
_MIN_PHONE, _MAX_PREFIX = 7, 4


@dataclass(frozen=True)
class _Numbers:
    numbers: set[str]
    clocks: set[tuple[int, int]]
    dates: list[tuple[int, int, int]]
    phones: list[str]
    months: set[int]
    weekdays: set[int]
    days: set[int]
    units: set[str]


def numbers_stand(fact: str, *, clause: str, written_on: date) -> bool:
    """Return whether each number, time, date and currency of the fact is in the clause.

    "5,000" is 5000, "5 pm" is 17:00, "two" is 2, and a telephone number may have its country code.
    A whole date may stand for "tomorrow", a weekday or a day without its year, as counted from
    ``written_on``.
    """
    noted, stated = _read(fact, is_fact=True), _read(clause, is_fact=False)
    return (
        all(_is_date_said(each, stated, written_on) for each in noted.dates)
        and all(_is_clock_said(each, stated) for each in noted.clocks)
        and all(each in stated.numbers for each in noted.numbers)
        and all(_is_phone_stated(each, stated) for each in noted.phones)
        and noted.months <= stated.months | {part for each in stated.dates for part in each[1:]}
        and noted.weekdays <= stated.weekdays
        and noted.units <= stated.units
    )


def _read(text: str, *, is_fact: bool) -> _Numbers:
    text = without_marks(text)
    words = words_of(text)
    dates = [(int(y), int(m), int(d)) for y, m, d in _ISO.findall(text)]
    dates += [(_whole_year(y), int(m), int(d)) for d, _sign, m, y in _DAY.findall(text)]
    rest = _DAY.sub(" ; ", _ISO.sub(" ; ", text))
    clocks = {_clock(found) for found in _CLOCK.finditer(rest)}
    numbers = {str(hour % 12 or 12) for hour, minute in clocks if minute == 0 and not is_fact}
    rest = _CLOCK.sub(" ; ", rest)
    phones = [re.sub(r"\D", "", found) for found in _PHONE.findall(rest)]
    if is_fact:
        # Numbers that are no telephone's are compared one by one.
        rest = _PHONE.sub(" ; ", rest)
    numbers |= set(_numbers(rest))
    # "One" is a pronoun, too.
    named = {lexicon.NUMBER_WORDS[word] for word in words if word in lexicon.NUMBER_WORDS}
    numbers |= named - {"1"} if is_fact else named
    return _Numbers(
        numbers,
        clocks,
        dates,
        phones,
        {month for word in words for month in _named(word, "months")},
        {day for word in words for day in _named(word, "weekdays")},
        {_RELATIVE[word] for word in words if word in _RELATIVE},
        {
            unit
            for unit, names in lexicon.CURRENCIES.items()
            if unit in text or any(word in names for word in words)
        },
    )


def _whole_year(year: str) -> int:
    return int(year) if len(year) > 2 else 2000 + int(year)


def _clock(found: re.Match[str]) -> tuple[int, int]:
    hour, minute = int(found[1] or found[4]), int(found[2] or found[5] or 0)
    if found[3]:
        hour = hour % 12 + (12 if found[3].lower().startswith("p") else 0)
    return hour, minute


def _numbers(text: str) -> Iterator[str]:
    for found in _NUMBER.finditer(text):
        number = found.group()
        if found[1]:
            whole, sign, cents = number, "", ""
            ending = re.search(r"([.,٫])(\d{1,2})$", number)
            if ending and ending[1] != found[1]:
                whole, sign, cents = number[: ending.start()], ".", ending[2]
            number = re.sub(r"\D", "", whole) + sign + cents
        elif re.fullmatch(r"\d+[.,٫]\d+", number):
            number = re.sub("[,٫]", ".", number)
        if re.fullmatch(r"\d+\.\d+", number):
            number = number.rstrip("0").rstrip(".")
        if number.isdigit():
            number += "000" if _THOUSAND.match(text, found.end()) else ""
        yield number


def _is_clock_said(clock: tuple[int, int], stated: _Numbers) -> bool:
    hour, minute = clock
    if clock in stated.clocks:
        return True
    if minute == 0:
        return str(hour) in stated.numbers
    return f"{hour}.{minute:02}".rstrip("0") in stated.numbers


def _is_date_said(noted: tuple[int, int, int], stated: _Numbers, written_on: date) -> bool:
    year, month, day = noted
    if any(each in ((year, month, day), (year, day, month)) for each in stated.dates):
        return True
    try:
        away = (date(year, month, day) - written_on).days
    except ValueError:
        return False
    if away in stated.days:
        return True
    if date(year, month, day).weekday() in stated.weekdays and abs(away) <= _TWO_WEEKS:
        return True
    in_year = abs(away) <= _YEAR or str(year) in stated.numbers
    short = {f"{day}/{month}", f"{month}/{day}", f"{day:02}/{month:02}", f"{month:02}/{day:02}"}
    short |= {f"{day}.{month}", f"{day}.{month:02}", f"{day:02}.{month:02}"}
    if in_year and short & stated.numbers:
        return True
    has_day = {str(day), f"{day:02}"} & stated.numbers
    if has_day and stated.months:
        return in_year and month in stated.months
    return bool(has_day) and abs(away) <= _TWO_MONTHS


def _is_phone_stated(phone: str, stated: _Numbers) -> bool:
    """Return whether the digits are those of a telephone number, or one long number."""
    return phone in stated.numbers or any(_is_same_phone(phone, each) for each in stated.phones)


def _is_same_phone(noted: str, stated: str) -> bool:
    """Return whether the numbers differ at most in their country code or leading zero."""
    short, long = sorted((noted.lstrip("0"), stated.lstrip("0")), key=len)
    enough = len(short) >= _MIN_PHONE and len(long) - len(short) < _MAX_PREFIX
    return noted == stated or (enough and long.endswith(short))


def _named(word: str, what: str) -> Iterator[int]:
    """Yield the months or weekdays that a word names, in any form of its language."""
    if len(word) < 3 or word == "may":
        return
    for bare in (word, word[1:] if word[0] in "בלמהו" else word):
        for name, number in _names(what):
            if bare.startswith(name) and len(bare) - len(name) <= 2:
                yield number


@lru_cache(maxsize=2)
def _names(what: str) -> tuple[tuple[str, int], ...]:
    """Return the beginnings of the names; their ends change with the case of the noun."""
    found = set()
    for language in _LANGUAGES:
        with override(language):
            for names in (MONTHS, MONTHS_ALT) if what == "months" else (WEEKDAYS,):
                for number, name in names.items():
                    folded = fold(str(name)).partition("-")[0]
                    found.add((folded[:-1] if len(folded) > 4 else folded, number))
    return tuple(found)
