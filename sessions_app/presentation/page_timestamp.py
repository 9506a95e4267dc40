"""When a page was made, as its forms post it: what happened later wasn't seen by who posts."""

from __future__ import annotations

from datetime import datetime

from django.core import signing

SALT = "page made"


def made_stamp(when: datetime) -> str:
    """For a hidden input. Take the time before the page reads anything."""
    return signing.dumps(when.isoformat(), salt=SALT)


def made_at(posted: str) -> datetime | None:
    """None where it is missing, or not of ours."""
    try:
        return datetime.fromisoformat(signing.loads(posted, salt=SALT))
    except signing.BadSignature:
        return None
