"""Post the time when a page was made with its forms: later changes weren't visible on it."""

from __future__ import annotations

from datetime import datetime

from django.core import signing

SALT = "page made"


def made_stamp(when: datetime) -> str:
    """Return the value of a hidden input. Take the time before the page reads anything."""
    return signing.dumps(when.isoformat(), salt=SALT)


def made_at(posted: str) -> datetime | None:
    """Return the posted time; None if it is missing or invalid."""
    try:
        return datetime.fromisoformat(signing.loads(posted, salt=SALT))
    except signing.BadSignature:
        return None
