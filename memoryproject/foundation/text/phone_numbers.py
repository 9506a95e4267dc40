"""Show a WhatsApp address as the number that people know."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"\d{7,15}")
# Country codes whose numbers are divided as people there write them; others are one group.
_GROUPS = (
    re.compile(r"(972)(5\d)(\d{3})(\d{4})"),
    re.compile(r"(972)(\d)(\d{3})(\d{4})"),
    re.compile(r"(1)(\d{3})(\d{3})(\d{4})"),
)


def number_shown(whatsapp_chat: str) -> str:
    """Return a person's number, such as +972 55-010-0101; other addresses as they are."""
    number, _, domain = whatsapp_chat.partition("@")
    if domain != "c.us" or not _DIGITS.fullmatch(number):
        return whatsapp_chat
    for groups in _GROUPS:
        if found := groups.fullmatch(number):
            country, *rest = found.groups()
            return f"+{country} {'-'.join(rest)}"
    return f"+{number}"
