"""Read ids from addresses, forms, searches and file names, which may hold anything."""

from __future__ import annotations

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
