"""Decide whether a group message addresses us: it mentions our number or quotes us."""

from __future__ import annotations

import re

from memoryproject.foundation.integrations.whatsapp.lenient import phone_digits


def names_number(text: str, number: str) -> bool:
    """Return whether the text mentions the number as WhatsApp writes it: @ and all its digits."""
    return bool(number) and re.search(rf"@\+?{re.escape(number)}(?![0-9])", text) is not None


def same_number(one: str, other: str) -> bool:
    """Return whether both are the same phone number, possibly in the form ``…@c.us``."""
    mine = phone_digits(one.partition("@")[0])
    return bool(mine) and mine == phone_digits(other.partition("@")[0])
