"""Redact personal data in a text: a mark such as "[phone]" takes the place of each.

Libraries decide where they can: ``stdnum`` checks the digits of ids, accounts and cards by country,
``phonenumbers`` short international numbers. In case of doubt a number is redacted.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from typing import Any, TypeAlias

from memoryproject.foundation.redaction import patterns
from memoryproject.foundation.redaction.numbers import NumberKind, personal_numbers

CLASSES = (
    *("phone", "email", "iban", "account", "id", "passport"),
    *("card", "address", "birth", "plate", "secret", "url"),
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
_MIN_DIGITS = {
    "passport": 5,
    "id": 6,
    "account": 5,
    "branch": 4,
    "plate": 2,
    "vehicle": 2,
    "phone": 5,
    "card": 13,
}
_MIN_LENGTH = {"plate": 4, "vehicle": 6}
_CLASS_OF_NAMED = {"branch": "account", "vehicle": "plate"}
_SECRETS = {"card", "iban", "account", "secret", "url"}
# A kind of secret.
_CODE = "code"
_MIN_SECRET_LENGTH = 4


def redact(text: str, classes: Collection[str] = CLASSES) -> str:
    """Return the text with a mark for each piece of personal data of these ``classes``.

    Dates, times, IP addresses, UUIDs, amounts, and the numbers of orders, flights and rooms stay.
    The function is idempotent. Raises ValueError for a class that isn't one of ``CLASSES``.
    """
    if unknown := set(classes) - set(CLASSES):
        raise ValueError(f"No classes of personal data: {', '.join(sorted(unknown))}")
    if not _is_suspect(text):
        return text
    clean = _redact_once(text, classes)
    before, after = text.split("\n"), clean.split("\n")
    if len(before) != len(after):
        return _redact_repeatedly(clean, classes)
    # What a redaction reveals is in its line or begins there.
    changed = [old != new for old, new in zip(before, after, strict=True)]
    again = [now or earlier for now, earlier in zip(changed, [False, *changed], strict=False)]
    return "\n".join(
        _redact_repeatedly("\n".join(after[index] for index in lines), classes)
        if is_again
        else "\n".join(after[index] for index in lines)
        for is_again, lines in groupby(range(len(after)), again.__getitem__)
    )


def _is_suspect(text: str) -> bool:
    return patterns.SUSPECT.search(text) is not None or patterns.holds_numerals(text)


def _redact_repeatedly(text: str, classes: Collection[str]) -> str:
    """Redact until nothing changes: a mark may reveal more ("a@b.example@c.example")."""
    while _is_suspect(text):
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


def holds_secret(text: str) -> bool:
    """Return whether the text holds a password, a key, or the number of a card or an account.

    The code of a door is none: guests are to be told.
    """
    return any(kind in _SECRETS for _start, _end, kind in _Search(text).run())


def holds_card_number(text: str) -> bool:
    """Return whether the text holds the whole number of a payment card."""
    numbers = personal_numbers(patterns.normalised(text))
    return any(number.kind is NumberKind.CARD for number in numbers)


def _redact_once(text: str, classes: Collection[str]) -> str:
    parts: list[str] = []
    place = 0
    for start, end, found in sorted(_Search(text).run()):
        kind = "secret" if found == _CODE else found
        if kind in classes:
            parts += [text[place:start], f"[{kind}]"]
            place = end
    return "".join([*parts, text[place:]])


# Start and end (exclusive) in the text, and the class; without a class it stays.
_Find: TypeAlias = tuple[int, int, str]


class _Search:
    """The search of one text. What is found first is not searched again."""

    def __init__(self, text: str) -> None:
        self._text = patterns.normalised(text)
        self._found: list[_Find] = []
        if "[" in text:
            self._take(self._all(patterns.CARD_CODE, "card"))
            self._take(self._all(_MARK))

    def run(self) -> list[_Find]:
        """Return what is found. Searches that can't find anything are left out, for speed."""
        self._take(self._urls())
        if patterns.AT.search(self._text):
            self._take(self._all(patterns.EMAIL, "email"))
            self._take(self._all(patterns.DISGUISED, "email"))
            self._take(self._all(patterns.SHORTENED, "email"))
        self._take(self._all(patterns.KEY, "secret"))
        if patterns.holds_numerals(self._text):
            spelled = self._all(patterns.SPELLED, "phone")
            self._take(
                each for each in spelled if patterns.is_spelled(self._text[each[0] : each[1]])
            )
        self._take(self._all(patterns.IDENTIFIER))
        has_word = patterns.KNOWN_WORD.search(self._text.lower()) is not None
        has_number = patterns.LONG_NUMBER.search(self._text) is not None
        if has_word and patterns.BIRTH_WORD.search(self._text):
            self._take(self._all(patterns.BIRTH_OF_THING))
            self._take(self._all(patterns.BIRTH_AFTER, "birth"))
            self._take(self._all(patterns.BIRTH, "birth"))
        if has_word:
            self._take(self._all(patterns.COMBINATION, "secret"))
        if has_number:
            self._take(self._ibans())
            self._take(self._checked(patterns.ID_FORMS, "id"))
            self._take(self._checked(patterns.ACCOUNT_FORMS, "account"))
            self._take(self._all(patterns.SORT_CODE, "account"))
            self._take(self._all(patterns.PHONE_FORMS, "phone"))
        self._take(self._all(patterns.PLATE_FORMS, "plate"))
        if has_word:
            self._take(self._named("plate"))
            self._take(self._named("vehicle"))
        if has_word or has_number:
            self._take(self._all(patterns.OTHERS))
        if has_word:
            for kind, pattern in patterns.SECRETS:
                self._take(self._secrets(kind, pattern))
        if has_word or has_number:
            self._take(self._all(patterns.REFERENCE))
            self._take(self._all(patterns.CARD_BESIDE, "card"))
        if has_word:
            for kind in ("passport", "id", "account", "branch", "phone", "card"):
                self._take(self._named(kind))
        if has_word or has_number:
            for pattern in patterns.ADDRESSES:
                self._take(self._addresses(pattern))
        if has_number:
            self._take(self._all(patterns.UNIX_TIME))
            self._take((it.start, it.end, it.kind.value) for it in personal_numbers(self._text))
        return self._found

    def _take(self, finds: Iterable[_Find]) -> None:
        """Remember the finds of one search, and hide them from further searches."""
        parts: list[str] = []
        place = 0
        for start, end, kind in finds:
            if start >= place:
                parts += [self._text[place:start], _TAKEN * (end - start)]
                place = end
                if kind:
                    self._found.append((start, end, kind))
        if parts:
            self._text = "".join([*parts, self._text[place:]])

    def _all(self, pattern: re.Pattern[str], kind: str = "") -> Iterator[_Find]:
        groups = "code" in pattern.groupindex
        for found in pattern.finditer(self._text):
            yield (*found.span(str(found.lastgroup) if groups else 0), kind)

    def _urls(self) -> Iterator[_Find]:
        for found in patterns.URL.finditer(self._text) if "://" in self._text else ():
            closing = _SENTENCE_END.search(found[0])
            end = found.end() - len(closing.group() if closing else "")
            if patterns.SECRET_URL.search(found[0]):
                yield found.start(), end, "url"
            elif not patterns.PERSONAL_URL.search(found[0]):
                yield found.start(), end, ""

    def _checked(self, pattern: re.Pattern[str], kind: str) -> Iterator[_Find]:
        """Yield what has the form and the check digits of a country."""
        for found in pattern.finditer(self._text):
            name = str(found.lastgroup)
            if name == "certain" or _is_valid(name, found[0]):
                yield (*found.span(), kind)

    def _ibans(self) -> Iterator[_Find]:
        for start in _IBAN_START.finditer(self._text):
            end = _iban_end(self._text, start.start())
            if end is not None:
                yield start.start(), end, "iban"

    def _secrets(self, kind: str, pattern: re.Pattern[str]) -> Iterator[_Find]:
        for found in pattern.finditer(self._text):
            start, end = found.span("code")
            closing = _SENTENCE_END.search(found["code"])
            if closing and closing.start():
                end -= len(closing.group())
            is_sure = found.groupdict().get("sure") or end - start >= _MIN_SECRET_LENGTH
            if is_sure and _TAKEN not in self._text[start:end]:
                yield start, end, kind

    def _addresses(self, pattern: re.Pattern[str]) -> Iterator[_Find]:
        last = 0
        for start, end, _kind in self._all(pattern):
            if start < last:
                continue
            while part := patterns.ADDRESS_PART.match(self._text, end):
                end = part.end()
            last = end
            if _TAKEN not in self._text[start:end]:
                yield start, end, "address"

    def _named(self, kind: str) -> Iterator[_Find]:
        for found in patterns.NAMED[kind].finditer(self._text):
            if _is_named(found["code"], kind):
                yield (*found.span("code"), _CLASS_OF_NAMED.get(kind, kind))


def _is_named(code: str, kind: str) -> bool:
    """Return whether the number that is named so has enough digits, and is no card's."""
    from stdnum import luhn  # noqa: PLC0415 slow to import

    digits = re.sub(r"\D", "", code)
    groups = re.findall(r"\d+", code)
    # years, or the numbers of pieces
    if kind == "card" and groups[1:] and all(re.match("19|20|..00", each) for each in groups):
        return False
    if len(re.sub(r"[\W_]", "", code)) < _MIN_LENGTH.get(kind, 0):
        return False
    is_card = kind == "account" and len(digits) in (15, 16) and luhn.is_valid(digits)
    # Newer documents have more letters than digits, all of them capitals: X4RTBPFW4.
    is_mixed = kind in ("id", "passport") and code.isupper() and len(code) > 7 and len(digits) > 1
    return (is_mixed or len(digits) >= _MIN_DIGITS[kind]) and not is_card


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
