"""Redact personal data in a text: e-mail addresses, telephone, card and account numbers, secrets.

``stdnum`` validates an account number and its length in its country. A country's own check digits
inside it are not validated, since redacting a number too many is acceptable.
"""

from __future__ import annotations

import re

from cards_app.rules.named_data import ACCOUNT, EMAIL, HIDDEN, ID, redact_named
from cards_app.rules.numbers import NumberKind, personal_numbers

IBAN = "[iban]"
NUMBER_MARKS = {NumberKind.CARD: "[card]", NumberKind.PHONE: "[phone]"}
MARKS = (EMAIL, IBAN, *NUMBER_MARKS.values(), HIDDEN, ID, ACCOUNT)

# Addresses of WhatsApp chats (15550100123@c.us) have this form, too.
_LOCAL = r"[\w.!#$%&'*+/=?^`{|}~-]"
_EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}+@(?:[\w-]+\.)+[^\W\d_][\w-]+")

_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9])")
_IBAN_REST = re.compile(r"(?:[ -]?[A-Za-z0-9])+", re.ASCII)
_MIN_IBAN_LENGTH, _MAX_IBAN_LENGTH = 15, 34


def redact(text: str) -> str:
    """Return the text with a mark such as "[phone]" for each piece of personal data.

    Telephone numbers are recognised generously: redacting a number too many is better than one
    too few. Dates, times, IP addresses and amounts stay. The function is idempotent.
    """
    while True:
        # A redaction may reveal another match ("a@b.example@c.example").
        clean = _redact_once(text)
        if clean == text:
            return text
        text = clean


def _redact_once(text: str) -> str:
    text = redact_named(_EMAIL.sub(EMAIL, text))
    text = _without_ibans(text)
    parts: list[str] = []
    place = 0
    for number in personal_numbers(text):
        parts += [text[place : number.start], NUMBER_MARKS[number.kind]]
        place = number.end
    return "".join([*parts, text[place:]])


def _without_ibans(text: str) -> str:
    parts: list[str] = []
    place = 0
    for start in _IBAN_START.finditer(text):
        end = _iban_end(text, start.start()) if start.start() >= place else None
        if end is not None:
            parts += [text[place : start.start()], IBAN]
            place = end
    return "".join([*parts, text[place:]])


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
