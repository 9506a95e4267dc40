"""Times in the form in which the API, events, exports and receipts write them."""

from __future__ import annotations

from datetime import datetime, timezone

# A stored time is shown in other time zones, too, and compared with the year before it.
EARLIEST = datetime(2, 1, 1, tzinfo=timezone.utc)
LATEST = datetime(9999, 12, 31, 9, tzinfo=timezone.utc)


def iso_utc(moment: datetime) -> str:
    """Return the time by ISO 8601 in UTC, with a Z at its end."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def is_storable(moment: datetime) -> bool:
    """Return whether the time can be shown in every time zone."""
    return EARLIEST <= moment <= LATEST
