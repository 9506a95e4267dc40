"""Read ids from addresses, forms, searches and file names, which may hold anything."""

from datetime import datetime, timezone
from uuid import UUID


def uuid_or_none(text: str | None) -> UUID | None:
    """Return the id that the text is, in any of its spellings; None if it is none."""
    try:
        return UUID(text or "")
    except ValueError:
        return None


def is_canonical_uuid(text: str) -> bool:
    """Return whether the text is an id, spelt as the program spells it."""
    return str(uuid_or_none(text)) == text


# Times in the form in which the API, events, exports and receipts write them.


# A stored time is shown in other time zones, too, and compared with the year before it.
EARLIEST = datetime(2, 1, 1, tzinfo=timezone.utc)
LATEST = datetime(9999, 12, 31, 9, tzinfo=timezone.utc)


def iso_utc(moment: datetime) -> str:
    """Return the time by ISO 8601 in UTC, with a Z at its end."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def is_storable(moment: datetime) -> bool:
    """Return whether the time can be shown in every time zone."""
    return EARLIEST <= moment <= LATEST
