"""Times in the form in which the API, events, exports and receipts write them."""

from __future__ import annotations

from datetime import datetime, timezone


def iso_utc(moment: datetime) -> str:
    """Return the time by ISO 8601 in UTC, with a Z at its end."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
