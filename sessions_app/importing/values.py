"""Checks single values of a JSON document. Each raises LegacyError, naming the field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from sessions_app.importing.errors import LegacyError

MAX_DEPTH = 50
# The largest whole number that every JSON reader keeps exactly.
MAX_COUNT = 2**53
EARLIEST = datetime(1970, 1, 1, tzinfo=timezone.utc)

MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
SURROGATE = re.compile("[\ud800-\udfff]")

Document = Mapping[str, Any]


def storable(value: object, field: str, depth: int = 0) -> None:
    """Refuse what PostgreSQL can't hold, anywhere in a value: NUL, lone surrogates, numbers
    that are none, and nesting without end."""
    if depth > MAX_DEPTH:
        raise LegacyError(f"{field}: nested more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        _storable_text(value, field)
    elif isinstance(value, float) and not math.isfinite(value):
        raise LegacyError(f"{field}: not a finite number")
    elif isinstance(value, list):
        for part in value:
            storable(part, field, depth + 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            _storable_text(key, field)
            storable(part, field, depth + 1)


def _storable_text(text: str, field: str) -> None:
    if "\x00" in text:
        raise LegacyError(f"{field}: holds a NUL character")
    if SURROGATE.search(text):
        raise LegacyError(f"{field}: holds half a character (a lone surrogate)")


def optional_text(document: Document, field: str, most: int) -> str | None:
    """The text, as it is; None where the field is missing or null."""
    value = document.get(field)
    if value is None:
        return None
    if not isinstance(value, str):
        raise LegacyError(f"{field}: not a text")
    storable(value, field)
    if len(value) > most:
        raise LegacyError(f"{field}: longer than {most} characters")
    return value


def required_text(document: Document, field: str, most: int) -> str:
    value = optional_text(document, field, most)
    if value is None:
        raise LegacyError(f"{field}: missing")
    return value


def optional_count(document: Document, field: str, most: int = MAX_COUNT) -> int | None:
    """A whole number from 0; None where the field is missing or null."""
    value = document.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise LegacyError(f"{field}: not a whole number")
    if not 0 <= value <= most:
        raise LegacyError(f"{field}: not between 0 and {most}")
    return value


def optional_flag(document: Document, field: str, default: bool) -> bool:
    value = document.get(field)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise LegacyError(f"{field}: neither true nor false")
    return value


def optional_moment(
    document: Document, field: str, latest: datetime
) -> tuple[datetime | None, bool]:
    """A time in UTC, and whether it had no zone and was taken for UTC; None where the field is
    missing or null. No time is after ``latest``: it would keep a session open for ever."""
    text = optional_text(document, field, 64)
    if text is None:
        return None, False
    found = MOMENT.fullmatch(text)
    if found is None:
        raise LegacyError(f"{field}: not a time in ISO form, such as 2026-01-18T09:30:00Z")
    day, minutes, seconds, fraction, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z", "z") else zone
    plain = f"{day}T{minutes}{seconds or ':00'}.{(fraction or '0')[:6]:0<6}"
    try:
        moment = datetime.fromisoformat(plain + zone[:3] + ":" + zone[-2:])
        moment = moment.astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        raise LegacyError(f"{field}: no such time") from error
    if not EARLIEST <= moment <= latest:
        raise LegacyError(f"{field}: before 1970 or in the future")
    return moment, found[5] is None


def required_moment(document: Document, field: str, latest: datetime) -> tuple[datetime, bool]:
    moment, naive = optional_moment(document, field, latest)
    if moment is None:
        raise LegacyError(f"{field}: missing")
    return moment, naive
