"""Find telephone and card numbers in a text, and distinguish them from dates and amounts.

Libraries decide whether a number is possible: ``stdnum`` checks a card's check digit,
``phonenumbers`` short international numbers and home numbers without their 0. This module finds
the places of numbers itself, because phonenumbers' own finder is strict and redaction must be
generous: the finder skips reserved numbers (+1 555 010 0123), local ones (555-0123) and those
that lack the prefix of their country.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path

# Separators between two groups of one number.
_GAP = re.compile(r"(?=[\]) ./\[(+-])[)\]]?(?:[./]| / | {0,3}-? {0,3})[\[(+]{0,2}")
_MAX_GAP = 10
_DIGITS = re.compile(r"\d+")

_GLUED = re.compile(r"[A-Za-z_₪$€£]")

_MAX_GROUPS = 6
_CARD_DIGITS = range(13, 20)
_LOOSE_CARD_DIGITS = range(15, 17)
# Countries where people write numbers without a 0 in front, and in which groups.
_HOME_FORMS: dict[str, list[list[int]]] = json.loads(
    Path(__file__).with_name("forms.json").read_text(encoding="utf-8")
)["home"]
_MIN_ABROAD_LENGTH = 6


class NumberKind(Enum):
    CARD = "card"
    PHONE = "phone"


@dataclass(frozen=True)
class Number:
    """A number of this kind, from ``start`` up to ``end`` (exclusive)."""

    kind: NumberKind
    start: int
    end: int


@dataclass(frozen=True)
class _Group:
    """A run of digits. ``gap``: the separator from the group before it."""

    start: int
    end: int
    digits: str
    gap: str = ""
    lead: str = ""


def personal_numbers(text: str) -> list[Number]:
    """Return the card and telephone numbers in ``text``, in order, without overlaps."""
    found: list[Number] = []
    for run in _runs(text):
        kinds = _kinds(run)
        index = 0
        while index < len(run):
            kind, first = kinds[index], index
            while index < len(run) and kinds[index] is kind:
                index += 1
            if kind is not None:
                found.append(_number(text, kind, run[first:index]))
    return found


def _number(text: str, kind: NumberKind, groups: Sequence[_Group]) -> Number:
    """Return the number of these groups, without a closing bracket after it."""
    start, end = groups[0].start - len(groups[0].lead), groups[-1].end
    if groups[0].lead == "(" and ")" not in text[start:end]:
        start += 1
    return Number(kind, start, end)


def _runs(text: str) -> Iterator[list[_Group]]:
    """Yield groups of digits that may belong to one number, by their separators."""
    run: list[_Group] = []
    for match in _DIGITS.finditer(text):
        if _is_glued(text, match):
            if run:
                yield run
            run = []
            continue
        gap = text[run[-1].end : match.start()] if run else ""
        joins = bool(run) and len(gap) <= _MAX_GAP and _GAP.fullmatch(gap) is not None
        if run and not joins:
            yield run
            run = []
        before = text[max(0, match.start() - 3) : match.start()]
        opening = re.search(r"(?:\+\s?[(\[]?|[(\[])$", before)
        lead = opening.group() if opening else ""
        run.append(_Group(*match.span(), match.group(), gap if joins else "", lead))
    if run:
        yield run


def _is_glued(text: str, digits: re.Match[str]) -> bool:
    """Return True for digits of a name ("INV001234567") and for an amount ("₪1500")."""
    before = text[max(0, digits.start() - 1) : digits.start()]
    after = text[digits.end() : digits.end() + 1]
    return bool(_GLUED.match(before) or _GLUED.match(after))


def _kinds(run: Sequence[_Group]) -> list[NumberKind | None]:
    """Return for each group the kind of number that it is part of."""
    kinds: list[NumberKind | None] = [None] * len(run)
    tests = (
        (NumberKind.CARD, _is_card),
        (NumberKind.PHONE, _is_surely_phone),
        (NumberKind.PHONE, _is_likely_phone),
        (NumberKind.PHONE, _is_local_phone),
        (NumberKind.PHONE, _is_home_phone),
    )
    for kind, test in tests:
        marked: set[int] = set()
        for first in range(len(run)):
            for last in range(min(len(run), first + _MAX_GROUPS), first, -1):
                free = all(kinds[index] is None for index in range(first, last))
                if free and test(run[first:last]):
                    marked.update(range(first, last))
        for index in marked:
            kinds[index] = kind
    return kinds


def _digits(groups: Sequence[_Group]) -> str:
    return "".join(group.digits for group in groups)


def _is_card(groups: Sequence[_Group]) -> bool:
    """Return whether this is a card: 13 to 19 digits with a valid check digit.

    They must be in one piece or grouped as on a card; 15 or 16 digits may have any groups.
    """
    from stdnum import luhn  # noqa: PLC0415 slow to import

    digits = _digits(groups)
    if len(digits) not in _CARD_DIGITS or not luhn.is_valid(digits):
        return False
    lengths = [len(group.digits) for group in groups]
    grouped = lengths[0] == 4 and all(length in (4, 6) for length in lengths[1:-1])
    return len(groups) == 1 or grouped or len(digits) in _LOOSE_CARD_DIGITS


def _is_surely_phone(groups: Sequence[_Group]) -> bool:
    """Return whether it starts like a telephone number: "+", 0, or an area code in brackets."""
    digits = _digits(groups)
    if "+" in groups[0].lead:
        return 8 <= len(digits) <= 15 or _is_abroad(digits)
    starts_so = digits[0] == "0" or groups[0].lead in ("(", "[")
    return starts_so and 9 <= len(digits) <= 17


def _is_likely_phone(groups: Sequence[_Group]) -> bool:
    """Return whether this is 9 to 15 digits in one piece, or 10 to 15 in groups.

    Most groups must have three or more digits; a list of years or prices isn't a number.
    """
    digits = _digits(groups)
    if len(groups) == 1:
        return 9 <= len(digits) <= 15
    lengths = [len(group.digits) for group in groups]
    listed = all(length == 4 for length in lengths) or any("/" in each.gap for each in groups[1:])
    in_long_groups = sum(length for length in lengths if length >= 3)
    return 10 <= len(digits) <= 15 and not listed and 2 * in_long_groups >= len(digits)


def _is_local_phone(groups: Sequence[_Group]) -> bool:
    """Return whether this is three or four digits, a dash and four, no years or round numbers."""
    lengths = [len(group.digits) for group in groups]
    if lengths not in ([3, 4], [4, 4]) or groups[1].gap != "-":
        return False
    is_year = lengths[0] == 4 and groups[0].digits[:2] in ("19", "20")
    return not is_year and not _are_round(groups)


def _are_round(groups: Sequence[_Group]) -> bool:
    return all(group.digits.endswith("0") for group in groups)


def _is_home_phone(groups: Sequence[_Group]) -> bool:
    """Return whether this is a home number in groups: 50-0000000, 3 600 0000, 612 34 56 78."""
    lengths = [len(group.digits) for group in groups]
    return any(
        lengths in forms and _is_home(_digits(groups), region)
        for region, forms in _HOME_FORMS.items()
        # a list of prices
        if lengths[0] < 3 or not _are_round(groups)
    )


@lru_cache(maxsize=10_000)
def _is_home(digits: str, region: str) -> bool:
    """Return whether a number of the region may have these digits."""
    import phonenumbers  # noqa: PLC0415 slow to import

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(digits, region))
    except phonenumbers.NumberParseException:
        return False


@lru_cache(maxsize=10_000)
def _is_abroad(digits: str) -> bool:
    """Return whether a number with its country code may be as short as this: +683 4002."""
    if len(digits) < _MIN_ABROAD_LENGTH:
        return False
    import phonenumbers  # noqa: PLC0415 slow to import

    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(f"+{digits}"))
    except phonenumbers.NumberParseException:
        return False
