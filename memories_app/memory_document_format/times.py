"""Timestamps and durations as the format writes them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?Z", re.ASCII)
_DURATION = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MAX_LENGTH = timedelta(days=36_500)


def read_stamp(text: str) -> datetime | None:
    """Parse an ISO 8601 timestamp with the suffix Z; return None for anything else.

    The first and the last possible year also give None: not every time zone can hold them.
    """
    found = _STAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    fraction = int((found[7] or "").ljust(6, "0")[:6])
    try:
        at = datetime(year, month, day, hour, minute, second, fraction, timezone.utc)
    except ValueError:
        return None
    return at if 1 < at.year < 9999 else None


def stamp(at: datetime) -> str:
    """Return the timestamp of a time, without fractions if it is a whole second."""
    utc = at.astimezone(timezone.utc).replace(tzinfo=None)
    return utc.isoformat() + "Z"


def read_duration(text: str) -> timedelta:
    """Parse 30m, 24h, 7d, 2w or 45s. Raises ValueError, which states the expected form."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no duration such as 7d, 24h, 2w or 30m")
    try:
        duration = timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        duration = MAX_LENGTH * 2
    if duration > MAX_LENGTH:
        raise ValueError(f"{text} is longer than {MAX_LENGTH.days} days")
    return duration
