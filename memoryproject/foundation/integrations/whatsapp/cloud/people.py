"""Identify the person of a message or a status: phones, business-scoped ids and names."""

from __future__ import annotations

import re
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.integrations.whatsapp.lenient import (
    first_text,
    listed,
    mapping,
    phone_digits,
    text_of,
)

# Country code and an id, with ENT between them if it is a parent id.
_BSUID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,160}")


def bsuid_of(*values: Any) -> str:
    """Return the first of the values that looks like a business-scoped user id."""
    return next((text for value in values if _BSUID.fullmatch(text := text_of(value))), "")


def party_of(*, address: Any, user_ids: list[Any], contacts: Any) -> tuple[Party, list[Any]]:
    """Return a person by their address (phone; may be absent since 2026) and user ids.

    Returns the person, and the contacts with further details of the person. A contact counts only
    if one of its ids is the person's, or if it is alone and has no id at all.
    """
    phone = phone_digits(address)
    bsuid = bsuid_of(*user_ids, address)
    other = "" if phone or bsuid else text_of(address)
    contact = _matching(listed(contacts), phone, bsuid)
    profile = mapping(contact.get("profile"))
    party = Party(
        phone=phone or phone_digits(contact.get("wa_id")) or None,
        bsuid=bsuid or bsuid_of(contact.get("user_id")) or None,
        other=other or None,
        name=text_of(profile.get("name")),
        username=(first_text(profile, "username") or first_text(contact, "username")).lstrip("@"),
    )
    return party, [contact] if contact else []


def _matching(contacts: list[Any], phone: str, bsuid: str) -> dict[str, Any]:
    for contact in map(mapping, contacts):
        same_phone = phone and phone_digits(contact.get("wa_id")) == phone
        same_bsuid = bsuid and bsuid in (
            text_of(contact.get("user_id")),
            text_of(contact.get("parent_user_id")),
        )
        if same_phone or same_bsuid:
            return contact
    alone = mapping(contacts[0]) if len(contacts) == 1 else {}
    return {} if alone.get("wa_id") or alone.get("user_id") else alone
