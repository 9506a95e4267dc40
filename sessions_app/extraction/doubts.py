"""Find the reasons why a fact isn't what its passage states, so that it waits for staff."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from django.utils.dates import MONTHS, MONTHS_ALT, WEEKDAYS
from django.utils.translation import override

from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import Kind, kind_of, tokenize
from sessions_app.extraction import statement_words as lexicon
from sessions_app.extraction.passage import (
    Clause,
    is_anothers,
    is_negation,
    is_past,
    without_marks,
    words_of,
)

# Scripts, and letters of these scripts, of languages whose negations aren't known here.
_UNKNOWN_LETTER = re.compile(
    r"[^\W\d_\u0000-\u024f\u0300-\u052f\u0590-\u06ff\u1e00-\u1eff\ufb1d-\ufb4f]"
    r"|[\u0370-\u03ff\u0530-\u058fپچژگیکјљњђћışğłąęśźżćńășțřůěčžšđåæøőűơư]"
)
# "Gluten free" and "I'm free on Monday" promise nothing.
_FREE = re.compile(
    r"(?:\b(?:is|are|for|get|gets|give|gives|a|an|always|with) free\b"
    r"|(?<!-)\bfree (?:delivery|shipping|cake|coffee|of charge|meal|drink|gift|service)\b)"
)
_OTHER_HAS = re.compile(r"\b[A-Z][a-z]+ (?:has|is|had|was|suffers|got)\b")
_CASE_CARE = re.compile(r"[^\W_]+")


def doubts_of(content: str, *, clause: Clause, is_owners: bool, written_on: date) -> Iterator[str]:
    """Yield the reasons, in a few words each; nothing if the clause states the fact."""
    noted = words_of(content)
    if not _is_known_language(clause.text):
        yield "language"
    if not numbers_stand(content, clause=clause.text, written_on=written_on):
        yield "number"
    if _negations(noted, content) != _negations(clause.words, clause.text):
        yield "negation"
    if _asks(clause):
        yield "question"
    if _is_supposed(clause) or (_wishes(clause.words) and not _wishes(noted)):
        yield "condition"
    if is_past(clause.words) and not is_past(noted):
        yield "the past"
    obliges = _any(noted, "duties") and not _any(clause.words, "duties")
    if _orders(clause) or obliges or _any(noted, "assistant"):
        yield "order"
    if _is_hearsay(clause):
        yield "hearsay"
    if is_anothers(noted, clause):
        yield "another person"
    if not is_owners and _is_about_business(noted, clause):
        yield "about the business"
    if _is_others_health(content, noted, clause):
        yield "health of others"


def _any(words: list[str], known: str) -> bool:
    """Return whether one of the words is in the list of this name."""
    return any(word in lexicon.words(known) for word in words)


def _is_known_language(text: str) -> bool:
    """Return whether the words by which a statement is judged are known in its language."""
    if _UNKNOWN_LETTER.search(unicodedata.normalize("NFC", text).lower()):
        return False
    latin = [token for token in tokenize(text) if token.script == "latin" and not token.part]
    known = [
        token
        for token in latin
        if kind_of(token) not in (Kind.PLAIN, Kind.NAME)
        or token.text in lexicon.words("first")
        or token.text in lexicon.words("links")
    ]
    return len(known) * 4 >= len(latin)


def _negations(words: list[str], text: str) -> int:
    """Count what denies or excepts. A pair such as "neither … nor" counts once."""
    is_portuguese = _any(words, "portuguese") or "ã" in text.lower()
    count = sum(is_negation(word) and not (word == "no" and is_portuguese) for word in words)
    return count or int(_any(words, "correlatives"))


def _asks(clause: Clause) -> bool:
    words = [word for word in clause.words if word not in lexicon.words("yes_or_no")]
    first = next((each for each in _CASE_CARE.findall(clause.text.casefold())), "")
    return (
        clause.asks
        or "¿" in clause.text
        or (bool(words) and words[0] in lexicon.words("asking"))
        or first in lexicon.ASKING_BY_ACCENT
        or _any(words, "asking_anywhere")
        or "יש לכם" in clause.text
    )


def _is_supposed(clause: Clause) -> bool:
    """Return whether a word of the sentence makes it a condition, a guess or a wish."""
    words = words_of(clause.sentences)
    text = f" {' '.join(words)} "
    if any(f" {phrase}" in text for phrase in lexicon.phrases("doubt_phrases")):
        return True
    # In Russian, "would like" is a wish that may be noted as one.
    if any(
        word in lexicon.words("doubts") and not (word == "бы" and before in lexicon.words("wishes"))
        for before, word in zip(["", *words], words, strict=False)
    ):
        return True
    exact = _CASE_CARE.findall(unicodedata.normalize("NFC", clause.sentences).casefold())
    if any(word in lexicon.CONDITIONS_BY_ACCENT for word in exact):
        return True
    return any(
        word == "se" and after in lexicon.words("portuguese_if")
        for word, after in zip(words, words[1:], strict=False)
    )


def _wishes(words: list[str]) -> bool:
    return any(word.endswith(("'d", "'ll")) or word in lexicon.words("wishes") for word in words)


def _orders(clause: Clause) -> bool:
    text = f" {' '.join(words_of(clause.sentences))} "
    if any(f" {phrase}" in text for phrase in lexicon.phrases("order_phrases")):
        return True
    if clause.words[:1] and clause.words[0] in lexicon.words("always"):
        return True
    rest = list(clause.words)
    while rest and rest[0] in lexicon.words("before_orders"):
        rest.pop(0)
    return bool(rest) and rest[0] in lexicon.words("orders")


def _is_hearsay(clause: Clause) -> bool:
    words = words_of(clause.sentences)
    text = f" {' '.join(words)} "
    return any(f" {phrase}" in text for phrase in lexicon.phrases("hearsay_phrases")) or any(
        word in lexicon.words("hearsay") and before not in lexicon.OWN_WORDS
        for before, word in zip(["", *words], words, strict=False)
    )


def _is_about_business(noted: list[str], clause: Clause) -> bool:
    """Return whether a client tells how the business is, or what it grants."""
    words = clause.words
    if _any(words, "benefits") or _FREE.search(" ".join(words)):
        return True
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_subject = not before or before in lexicon.words("links")
        # "So you know" tells nothing of the business.
        if word in lexicon.words("second") and is_subject and after != "know":
            return True
    if _any(words, "first"):
        return False
    return _any(words, "second") or _any(words, "business") or _any(noted, "business")


def _is_others_health(content: str, noted: list[str], clause: Clause) -> bool:
    if not _any([*noted, *clause.words], "health"):
        return False
    is_own = _any(clause.words, "first") and not _OTHER_HAS.search(clause.text)
    return not is_own or _any(clause.words, "others")


# Check that the numbers, times and dates of a fact stand in its clause.

_LANGUAGES = ("en", "he", "es", "pt", "ar", "ru", "fr", "de", "it", "pl", "tr", "uk")
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
    # Most people write its quotation mark as this one, which else divides words.
    words = words_of(text.replace('ש"ח', "שח"))
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
        {month for word in words for month in calendar_numbers(word, "months")},
        {day for word in words for day in calendar_numbers(word, "weekdays")},
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


@lru_cache(maxsize=8_192)
def calendar_numbers(word: str, what: str) -> tuple[int, ...]:
    """Return the months or weekdays that a word names, in any form of its language."""
    if len(word) < 3 or word == "may":
        return ()
    bare = (word, word[1:]) if word[0] in "בלמהו" else (word,)
    return tuple(
        number
        for name, number in _names(what)
        # A short name has no endings: "mai" is a month, and "main" a street.
        if any(
            each.startswith(name) and len(each) - len(name) <= 2 * (len(name) > 3) for each in bare
        )
    )


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
