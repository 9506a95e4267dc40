"""Read fields of a provider's JSON, which may hold any value anywhere. Nothing here raises."""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import datetime, timezone
from typing import Any

# Deeper than any provider's body and far below Python's recursion limit.
_MAX_DEPTH = 60
_LATEST_SECOND = 4_102_444_800  # the year 2100
_MAX_NUMBER_LENGTH = 20
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_PHONE_PUNCTUATION = re.compile(r"[\s+().-]")


def storable(value: Any, depth: int = 0) -> Any:
    """Return the JSON without content that PostgreSQL refuses.

    This is NUL, lone surrogates, NaN and excessive depth.
    """
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value.replace("\x00", ""))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (dict, list)) and depth >= _MAX_DEPTH:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {storable(str(k)): storable(item, depth + 1) for k, item in value.items()}
    if isinstance(value, list):
        return [storable(item, depth + 1) for item in value]
    return value


def mapping(value: Any) -> dict[str, Any]:
    """Return the object, or an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return the list's members; a single value that should have been a list is one member."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text_of(value: Any) -> str:
    """Return a string unchanged, a whole number in digits, anything else as an empty text."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        # Longer numbers are no ids, and Python refuses to print very long ones.
        return str(value) if abs(value) < 10**_MAX_NUMBER_LENGTH else ""
    return ""


def first_text(source: dict[str, Any], *keys: str) -> str:
    """Return the value of the first key that holds a text that isn't empty."""
    return next((found for key in keys if (found := text_of(source.get(key)))), "")


def flag(value: Any) -> bool:
    """Return True only for a real ``true``."""
    return value is True


def whole(value: Any) -> int | None:
    """Return a whole number, even if it is given as a string."""
    shown = text_of(value).strip()
    if len(shown) <= _MAX_NUMBER_LENGTH and re.fullmatch(r"-?[0-9]+", shown):
        return int(shown)
    return None


def number_shown(value: Any) -> str:
    """Return a number in readable form (30, 12.5), or an empty text."""
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    shown = text_of(value).strip()
    return shown if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", shown) else ""


def phone_digits(value: Any) -> str:
    """Return a phone number's digits, or an empty text if it isn't a phone number."""
    bare = _PHONE_PUNCTUATION.sub("", text_of(value))
    return bare if re.fullmatch(r"[0-9]{1,20}", bare) else ""


def moment(value: Any, fallback: datetime) -> datetime:
    """Return seconds since 1970 (number or string) as an aware UTC time, else the fallback."""
    seconds = value if isinstance(value, float) else whole(value)
    if seconds is None or not 0 < seconds < _LATEST_SECOND:
        return fallback
    return datetime.fromtimestamp(int(seconds), tz=timezone.utc)


def compact(**values: Any) -> dict[str, Any]:
    """Return the values that aren't empty."""
    return {key: value for key, value in values.items() if value not in ("", None, False, [], {})}


def fingerprint(raw: dict[str, Any]) -> str:
    """Return a key for an object without an id: the same content gives the same key."""
    canonical = json.dumps(raw, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]
