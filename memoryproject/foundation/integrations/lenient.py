"""Read fields of a provider's JSON, which may hold any value anywhere. Nothing here raises."""

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


def number_shown(value: Any) -> str:
    """Return a number in readable form (30, 12.5), or an empty text."""
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    shown = text_of(value).strip()
    return shown if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", shown) else ""


def phone_digits(value: Any) -> str:
    """Return a phone number's digits, or an empty text if it isn't a phone number.

    0 stands for a number that is hidden: it would make one person of all who hide theirs.
    """
    bare = _PHONE_PUNCTUATION.sub("", text_of(value))
    return bare if re.fullmatch(r"[1-9][0-9]{0,19}", bare) else ""


class Fields(dict[str, Any]):
    """An object of a provider's JSON: its values, in the types that they should have."""

    @classmethod
    def of(cls, value: Any) -> "Fields":
        """Return the object, or an empty one."""
        return cls(value) if isinstance(value, dict) else cls()

    def at(self, *keys: str) -> "Fields":
        """Return the first object of these keys that isn't empty, or an empty one."""
        return next((found for key in keys if (found := Fields.of(self.get(key)))), Fields())

    def text(self, *keys: str) -> str:
        """Return the value of the first key that holds a text that isn't empty."""
        return next((found for key in keys if (found := text_of(self.get(key)))), "")

    def objects(self, key: str) -> "list[Fields]":
        """Return the members of a list as objects."""
        return [Fields.of(member) for member in listed(self.get(key))]

    def flag(self, key: str) -> bool:
        """Return True only for a real ``true``."""
        return self.get(key) is True

    def whole(self, key: str) -> int | None:
        """Return a whole number, even if it is given as a string."""
        return _whole(self.get(key))

    def seconds(self, key: str) -> int | None:
        """Return a duration in whole seconds, even if it is given with a fraction."""
        value = self.get(key)
        return round(value) if isinstance(value, float) and 0 <= value < 10**9 else self.whole(key)

    def phone(self, *keys: str) -> str:
        """Return the digits of the first phone number of these keys."""
        return next((found for key in keys if (found := phone_digits(self.get(key)))), "")

    def moment(self, key: str, fallback: datetime) -> datetime:
        """Return seconds since 1970 (number or string) as a UTC time, else the fallback."""
        value = self.get(key)
        seconds = value if isinstance(value, float) else _whole(value)
        if seconds is None or not 0 < seconds < _LATEST_SECOND:
            return fallback
        return datetime.fromtimestamp(int(seconds), tz=timezone.utc)


def _whole(value: Any) -> int | None:
    shown = text_of(value).strip()
    if len(shown) <= _MAX_NUMBER_LENGTH and re.fullmatch(r"-?[0-9]+", shown):
        return int(shown)
    return None


def compact(**values: Any) -> dict[str, Any]:
    """Return the values that aren't empty."""
    return {key: value for key, value in values.items() if value not in ("", None, False, [], {})}


def fingerprint(raw: dict[str, Any]) -> str:
    """Return a key for an object without an id: the same content gives the same key."""
    canonical = json.dumps(raw, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def event_head(
    provider: str, number_id: str, raw: dict[str, Any], *, key: str, label: str
) -> dict[str, Any]:
    """Return the fields that every event has. Without an own key, the content is the key."""
    key = key or f"{label[:40] or 'event'}:{fingerprint(raw)}"
    delivery_key = f"{number_id}:{key}"
    return {"provider": provider, "number_id": number_id, "delivery_key": delivery_key, "raw": raw}
