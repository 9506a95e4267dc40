"""Parse a text into words and values, so that two spellings of one thing are equal."""

import re
from dataclasses import dataclass

from memories_app.facts import lexicon

WORD, NUMBER, TIME, RANGE, WEEKDAY, DATE, NAME, SYMBOL = (
    "word", "number", "time", "range", "weekday", "date", "name", "symbol",
)  # fmt: skip
VALUES = frozenset({NUMBER, TIME, RANGE, WEEKDAY, DATE})
TEMPORAL = frozenset({TIME, WEEKDAY, DATE})


@dataclass(frozen=True)
class Token:
    """``kind`` is one of the above; ``text`` is the normalised spelling.

    A name is an identifier such as INV-001: it identifies a thing and is never an amount.
    """

    kind: str
    text: str


_CLOCK = r"\d{1,2}:\d{2}"
_PATTERN = re.compile(
    rf"""
    (?P<date>\d{{1,4}}([-./])\d{{1,2}}\2\d{{1,4}}(?![-./]?\w))
    |(?P<clock>(?:{_CLOCK}|\d{{1,2}})\s?[ap]\.?m\b)
    |(?P<range>(?<![\w.,])(?:{_CLOCK}|\d{{1,4}})\s?[-–—]\s?(?:{_CLOCK}|\d{{1,4}})(?![\w:]|[-–./]\w))
    |(?P<time>{_CLOCK}(?![\w:]))
    |(?P<amount>(?:(?<![^\s(])[-−])?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?(?![\w]|[-–/_.@]\w))
    |(?P<hebrew>[א-ת]+(?:['"׳״][א-ת]+)*)
    |(?P<chunk>[#]?[^\W_א-ת]+(?:[-–_./@&'][^\W_א-ת]+)*)
    |(?P<symbol>[^\s\w])
    |(?P<other>\S)
    """,
    re.VERBOSE,
)
_IGNORED = frozenset(".,;:!…\"'`()[]{}<>-–—־׳״“”‘’*•_")


def tokens_of(folded_text: str) -> list[Token]:
    """Return the tokens of a text that went through ``folded``."""
    # Each contraction has one of these.
    if any(mark in folded_text for mark in ("'", "nt", "not", "wont")):
        for pattern, plain in lexicon.CONTRACTIONS:
            folded_text = pattern.sub(plain, folded_text)
    tokens: list[Token] = []
    for match in _PATTERN.finditer(folded_text):
        kind = match.lastgroup or ""
        token = _token(kind, match.group(kind))
        if token is not None:
            tokens.append(token)
    return _joined(tokens)


def _token(kind: str, text: str) -> Token | None:
    if kind == "date":
        return Token(DATE, text)
    if kind in ("clock", "time"):
        return Token(TIME, _clock(text))
    if kind == "range":
        first, last = re.split(r"\s?[-–—]\s?", text)
        return Token(RANGE, f"{_clock(first)}-{_clock(last)}")
    if kind == "amount":
        return Token(NUMBER, _amount(text))
    if kind == "hebrew":
        return Token(WORD, re.sub("['\"׳״]", "", text))
    if kind == "chunk":
        return _chunk(text)
    return None if text in _IGNORED else Token(SYMBOL, text)


def _chunk(text: str) -> Token:
    if text in lexicon.NUMBER_WORDS:
        return Token(NUMBER, lexicon.NUMBER_WORDS[text])
    if text in lexicon.WEEKDAYS:
        return Token(WEEKDAY, lexicon.WEEKDAYS[text])
    plain = text.replace("-", "").replace("'", "")
    return Token(WORD if plain.isalpha() else NAME, text)


def _clock(text: str) -> str:
    """Normalise a time: 09:00 is 9, and 9:30 pm is 21:30."""
    found = re.fullmatch(r"(\d{1,2})(?::(\d{2}))?\s?(a|p)?\.?m?", text)
    if found is None:
        return text
    hour, minutes, half = int(found[1]), found[2] or "00", found[3]
    if half and not 1 <= hour <= 12:
        return text
    if half == "p":
        hour = hour % 12 + 12
    shown = str(hour) if minutes == "00" else f"{hour}:{minutes}"
    return f"{shown}am" if half == "a" else shown


def _amount(text: str) -> str:
    """Normalise an amount: 5,000.00 is 5000.

    007 stays unchanged, and so does 1.000, which may be a thousand.
    """
    number = text.replace(",", "").replace("−", "-")
    whole, _, part = number.partition(".")
    if len(part) in (1, 2) and not part.strip("0"):
        return whole
    return number


def _joined(tokens: list[Token]) -> list[Token]:
    """Join values with the words that belong to them: currencies, months, weekdays, ranges."""
    return _with_ranges(_with_days(_with_dates(_with_units(tokens))))


def _with_units(tokens: list[Token]) -> list[Token]:
    out: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        sign = lexicon.CURRENCIES.get(token.text) if token.kind == SYMBOL else None
        if sign and after and after.kind == NUMBER:
            out.append(Token(NUMBER, after.text + sign))
            place += 2
            # "₪5000 NIS"
            if place < len(tokens) and lexicon.CURRENCIES.get(tokens[place].text) == sign:
                place += 1
            continue
        if token.kind == NUMBER and after and after.kind in (WORD, SYMBOL):
            unit = lexicon.CURRENCIES.get(after.text)
            if after.text in lexicon.PERCENT:
                unit = "%"
            if unit:
                out.append(Token(NUMBER, token.text + unit))
                place += 2
                continue
        out.append(token)
        place += 1
    return out


_ORDINAL = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")


def _day_of_month(token: Token) -> int | None:
    found = _ORDINAL.fullmatch(token.text) if token.kind == NAME else None
    digits = found[1] if found else token.text if token.kind == NUMBER else ""
    return int(digits) if digits.isdigit() and 1 <= int(digits) <= 31 else None


def _with_dates(tokens: list[Token]) -> list[Token]:
    """Join "May 5", "5th of May" and "5 May" to one date, with the year that may follow."""
    out: list[Token] = []
    place = 0
    while place < len(tokens):
        found = _date_at(tokens, place)
        if found is None:
            out.append(tokens[place])
            place += 1
            continue
        length, text = found
        place += length
        if place < len(tokens) and re.fullmatch(r"(?:19|20)\d\d", tokens[place].text):
            text += f"/{tokens[place].text}"
            place += 1
        out.append(Token(DATE, text))
    return out


def _date_at(tokens: list[Token], place: int) -> tuple[int, str] | None:
    """Return how many tokens a day and a month take at this place, and the date."""
    token = tokens[place]
    rest = tokens[place + 1 : place + 3]
    day = _day_of_month(token)
    if day is not None and rest:
        skip = 1 if rest[0].text == "of" and len(rest) > 1 else 0
        month = lexicon.MONTHS.get(rest[skip].text)
        if month:
            return 2 + skip, f"{day}/{month}"
    month = lexicon.MONTHS.get(token.text) if token.kind == WORD else None
    if month and rest:
        day = _day_of_month(rest[0])
        if day is not None:
            return 2, f"{day}/{month}"
    return None


def _with_days(tokens: list[Token]) -> list[Token]:
    """Join Hebrew weekdays, which are two words."""
    out: list[Token] = []
    for token in tokens:
        before = out[-1] if out else None
        if before and before.text in lexicon.HEBREW_DAY_WORDS:
            day = lexicon.HEBREW_WEEKDAYS.get(token.text)
            if day:
                out.pop()
                prefix = lexicon.HEBREW_DAY_WORDS[before.text]
                if prefix:
                    out.append(Token(WORD, prefix))
                out.append(Token(WEEKDAY, day))
                continue
        out.append(token)
    return out


def _with_ranges(tokens: list[Token]) -> list[Token]:
    """Join "from 9 to 17" to 9-17."""
    out: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if place + 2 < len(tokens) and token.kind in VALUES:
            joint, last = tokens[place + 1], tokens[place + 2]
            between = bool(out) and out[-1].text == "between" and joint.text == "and"
            joins = joint.text in lexicon.RANGE_WORDS or between
            if joins and last.kind in VALUES and RANGE not in (token.kind, last.kind):
                token = Token(RANGE, f"{token.text}-{last.text}")
                place += 2
        if token.kind == RANGE and out and out[-1].text in lexicon.RANGE_STARTS:
            out.pop()
        out.append(token)
        place += 1
    return out
