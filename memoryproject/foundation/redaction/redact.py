"""Redact personal data in a text: a mark such as "[phone]" takes the place of each.

Libraries decide where they can: ``stdnum`` checks the digits of ids, accounts and cards by country,
``phonenumbers`` short international numbers. In case of doubt a number is redacted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from importlib import import_module
from typing import Any

from memoryproject.foundation.redaction import patterns
from memoryproject.foundation.redaction.numbers import NumberKind, personal_numbers

CLASSES = (
    "phone",
    "email",
    "iban",
    "account",
    "id",
    "passport",
    "card",
    "address",
    "birth",
    "plate",
    "secret",
    "url",
)
MARKS = tuple(f"[{each}]" for each in CLASSES)
# Takes the place of what is found, so that nothing else is found in it or across it.
_TAKEN = "\x00"
_MARK = re.compile("|".join(map(re.escape, MARKS)))

_SENTENCE_END = re.compile(r"[.,;:!?)\]\"']{1,5}$")
_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9])")
_IBAN_REST = re.compile(r"(?:[ -]?[A-Za-z0-9])+", re.ASCII)
_MIN_IBAN_LENGTH, _MAX_IBAN_LENGTH = 15, 34
# The fewest digits of a number that is named as one of these.
_MIN_DIGITS = {"passport": 5, "id": 6, "account": 5, "branch": 4, "plate": 2}
_MIN_PLATE_LENGTH = 4
_MIN_SECRET_LENGTH = 4


def redact(text: str, classes: Collection[str] = CLASSES) -> str:
    """Return the text with a mark for each piece of personal data of these ``classes``.

    Dates, times, IP addresses, UUIDs, amounts, and the numbers of orders, flights and rooms stay.
    The function is idempotent. Raises ValueError for a class that isn't one of ``CLASSES``.
    """
    if unknown := set(classes) - set(CLASSES):
        raise ValueError(f"No classes of personal data: {', '.join(sorted(unknown))}")
    while patterns.SUSPECT.search(text):
        # A redaction may reveal another match ("a@b.example@c.example").
        clean = _redact_once(text, classes)
        if clean == text:
            break
        text = clean
    return text


def redact_data(value: Any) -> Any:
    """Return a value of JSON with all its texts redacted; names of fields stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: redact_data(each) for name, each in value.items()}
    return [redact_data(each) for each in value] if isinstance(value, list) else value


def holds_card_number(text: str) -> bool:
    """Return whether the text holds the whole number of a payment card."""
    numbers = personal_numbers(patterns.normalised(text))
    return any(number.kind is NumberKind.CARD for number in numbers)


def _redact_once(text: str, classes: Collection[str]) -> str:
    parts: list[str] = []
    place = 0
    for start, end, kind in sorted(_Search(text).run()):
        if kind in classes:
            parts += [text[place:start], f"[{kind}]"]
            place = end
    return "".join([*parts, text[place:]])


class _Search:
    """The search of one text. What is found first is not searched again."""

    def __init__(self, text: str) -> None:
        self._text = patterns.normalised(text)
        if "[" in text:
            self._take_all(_MARK)
        self._found: list[tuple[int, int, str]] = []

    def run(self) -> list[tuple[int, int, str]]:
        """Return start, end (exclusive) and class of each find."""
        self._take_all(patterns.IDENTIFIER)
        self._urls()
        if patterns.AT.search(self._text):
            self._take_all(patterns.EMAIL, "email")
            self._take_all(patterns.DISGUISED, "email")
        self._take_all(patterns.KEY, "secret")
        self._take_all(patterns.URL_PARAMETER, "secret")
        has_word = patterns.KNOWN_WORD.search(self._text.lower()) is not None
        has_number = patterns.LONG_NUMBER.search(self._text) is not None
        if has_word:
            self._take_all(patterns.BIRTH_AFTER, "birth")
            self._take_all(patterns.BIRTH, "birth")
        if has_number:
            self._ibans()
            self._checked(patterns.ID_FORMS, "id")
            self._checked(patterns.ACCOUNT_FORMS, "account")
            self._take_all(patterns.SORT_CODE, "account")
        self._take_all(patterns.PLATE_FORMS, "plate")
        if has_word:
            self._named("plate")
        if has_word or has_number:
            self._take_all(patterns.OTHERS)
        if has_word:
            self._secrets()
        if has_word or has_number:
            self._take_all(patterns.REFERENCE)
        if has_word:
            for kind in ("passport", "id", "account", "branch"):
                self._named(kind)
        if has_word or has_number:
            self._addresses()
        if has_number:
            for number in personal_numbers(self._text):
                self._take(number.start, number.end, number.kind.value)
        return self._found

    def _take(self, start: int, end: int, kind: str = "") -> None:
        """Remember the find, and hide it from further searches. Without a class it stays."""
        if kind:
            self._found.append((start, end, kind))
        self._text = self._text[:start] + _TAKEN * (end - start) + self._text[end:]

    def _take_all(self, pattern: re.Pattern[str], kind: str = "") -> None:
        group = "code" if "code" in pattern.groupindex else 0
        for found in list(pattern.finditer(self._text)):
            self._take(*found.span(group), kind)

    def _urls(self) -> None:
        if "://" not in self._text:
            return
        for found in list(patterns.URL.finditer(self._text)):
            end = found.end()
            if closing := _SENTENCE_END.search(found[0]):
                end -= len(closing.group())
            if patterns.SECRET_URL.search(found[0]):
                self._take(found.start(), end, "url")
            elif not patterns.PERSONAL_URL.search(found[0]):
                self._take(found.start(), end)

    def _checked(self, pattern: re.Pattern[str], kind: str) -> None:
        """Take what has the form and the check digits of a country."""
        for found in list(pattern.finditer(self._text)):
            name = str(found.lastgroup)
            if name == "certain" or _is_valid(name, found[0]):
                self._take(*found.span(), kind)

    def _ibans(self) -> None:
        for start in list(_IBAN_START.finditer(self._text)):
            end = _iban_end(self._text, start.start())
            if end is not None:
                self._take(start.start(), end, "iban")

    def _secrets(self) -> None:
        for found in list(patterns.SECRET.finditer(self._text)):
            start, end = found.span("code")
            closing = _SENTENCE_END.search(found["code"])
            if closing and closing.start():
                end -= len(closing.group())
            secret = self._text[start:end]
            # After a colon any word is the secret; else it has a digit: "the password is wrong".
            is_sure = found["sure"] or len(secret) >= _MIN_SECRET_LENGTH
            if is_sure and _TAKEN not in secret:
                self._take(start, end, "secret")

    def _addresses(self) -> None:
        for pattern in (*patterns.ADDRESSES, patterns.NAMED_ADDRESS):
            group = "code" if "code" in pattern.groupindex else 0
            for found in list(pattern.finditer(self._text)):
                start, end = found.span(group)
                while part := patterns.ADDRESS_PART.match(self._text, end):
                    end = part.end()
                if _TAKEN not in self._text[start:end]:
                    self._take(start, end, "address")

    def _named(self, kind: str) -> None:
        for found in list(patterns.NAMED[kind].finditer(self._text)):
            if _is_named(found["code"], kind):
                self._take(*found.span("code"), "account" if kind == "branch" else kind)


def _is_named(code: str, kind: str) -> bool:
    """Return whether the number that is named so has enough digits, and is no card's."""
    from stdnum import luhn  # noqa: PLC0415 slow to import

    digits = re.sub(r"\D", "", code)
    if kind == "plate" and len(re.sub(r"[\W_]", "", code)) < _MIN_PLATE_LENGTH:
        return False
    is_card = kind == "account" and len(digits) in (15, 16) and luhn.is_valid(digits)
    return len(digits) >= _MIN_DIGITS[kind] and not is_card


@lru_cache(maxsize=1_000)
def _is_valid(name: str, number: str) -> bool:
    """Return whether stdnum's module, such as "br_cpf", accepts the number."""
    if name == "il_idnr":
        number = re.sub(r"\D", "", number).zfill(9)
    country, module = name.rsplit("_", 1)
    return bool(import_module(f"stdnum.{country}.{module}").is_valid(number))


def _iban_end(text: str, start: int) -> int | None:
    """Return where the account number that starts here ends; None if there is none.

    Words may follow it after a space, so the end of each group is tried, the farthest first.
    """
    # Twice the length leaves room for a space or a hyphen before each character.
    rest = _IBAN_REST.match(text, start, start + 2 * _MAX_IBAN_LENGTH)
    if rest is None:
        return None
    from stdnum import iban  # noqa: PLC0415 slow to import

    for end in range(rest.end(), start, -1):
        if text[end : end + 1].isascii() and text[end : end + 1].isalnum():
            continue
        compact = re.sub("[ -]", "", text[start:end])
        fits = _MIN_IBAN_LENGTH <= len(compact) <= _MAX_IBAN_LENGTH
        if fits and iban.is_valid(compact, check_country=False):
            return end
    return None
