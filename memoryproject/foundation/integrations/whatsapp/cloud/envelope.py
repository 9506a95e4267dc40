"""Read one ``change`` of a Cloud API webhook body: its envelope and the people it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Ignored, Party
from memoryproject.foundation.integrations.whatsapp.lenient import (
    Fields,
    fingerprint,
    phone_digits,
    text_of,
)
from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import whatsapp_chat_of_provider

# Country code and an id, with ENT between them if it is a parent id.
_BSUID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,160}")


def bsuid_of(*values: Any) -> str:
    """Return the first of the values that looks like a business-scoped user id."""
    return next((text for value in values if _BSUID.fullmatch(text := text_of(value))), "")


def party_of(
    *, address: Any, user_ids: list[Any], contacts: list[Fields]
) -> tuple[Party, dict[str, Any]]:
    """Return a person by their address (phone; may be absent since 2026) and user ids.

    Returns the person, and the part of the body with further details of the person, if there is
    one. A contact counts only if one of its ids is the person's, or if it is alone and has no id at
    all.
    """
    phone = phone_digits(address)
    bsuid = bsuid_of(*user_ids, address)
    other = "" if phone or bsuid else whatsapp_chat_of_provider(text_of(address))
    contact = _matching(contacts, phone, bsuid)
    profile = contact.at("profile")
    party = Party(
        phone=phone or contact.phone("wa_id") or None,
        bsuid=bsuid or bsuid_of(contact.get("user_id")) or None,
        other=other or None,
        name=profile.text("name"),
        username=(profile.text("username") or contact.text("username")).lstrip("@"),
    )
    return party, {"contacts": [contact]} if contact else {}


def _matching(contacts: list[Fields], phone: str, bsuid: str) -> Fields:
    for contact in contacts:
        same_phone = phone and contact.phone("wa_id") == phone
        if same_phone or (
            bsuid and bsuid in (contact.text("user_id"), contact.text("parent_user_id"))
        ):
            return contact
    alone = contacts[0] if len(contacts) == 1 else Fields()
    return Fields() if alone.get("wa_id") or alone.get("user_id") else alone


@dataclass(frozen=True)
class Change:
    """A change with its surrounding entry. ``value`` is empty where it was no object."""

    entry: dict[str, Any]
    field: str
    value: Fields
    received_at: datetime

    @property
    def number_id(self) -> str:
        return self.value.at("metadata").text("phone_number_id")

    @property
    def business_number(self) -> str:
        """Our own number's digits."""
        return self.value.at("metadata").phone("display_phone_number")

    @property
    def contacts(self) -> list[Fields]:
        return self.value.objects("contacts")

    def part(self, **parts: Any) -> dict[str, Any]:
        """Return a webhook body with only these parts of the value and our identification.

        It doesn't depend on the rest of the same delivery, because a retry may be batched
        differently.
        """
        names = ("messaging_product", "metadata")
        kept: dict[str, Any] = {name: self.value[name] for name in names if name in self.value}
        return self._body({**kept, **parts})

    def whole(self) -> dict[str, Any]:
        """Return a webhook body that holds this change alone."""
        return self._body(dict(self.value))

    def _body(self, value: dict[str, Any]) -> dict[str, Any]:
        around = {key: self.entry[key] for key in ("id", "time") if key in self.entry}
        change = {"field": self.field, "value": value}
        return {
            "object": "whatsapp_business_account",
            "entry": [{**around, "changes": [change]}],
        }

    def head(self, raw: dict[str, Any], key: str = "") -> dict[str, Any]:
        """Return the fields that every event has. Without an own key, the content is the key."""
        number = self.number_id
        return {
            "provider": "cloud",
            "number_id": number,
            "delivery_key": f"{number}:{key}" if key else content_key(number, self.field, raw),
            "raw": raw,
        }

    def ignored(self, raw: dict[str, Any], reason: str, key: str = "") -> Ignored:
        return Ignored(**self.head(raw, key), reason=reason)


def content_key(number_id: str, label: str, raw: dict[str, Any]) -> str:
    """Return the delivery key of an object without an id, from its content and time alone."""
    return f"{number_id}:{label[:40] or 'event'}:{fingerprint(raw)}"


def unreadable(raw: dict[str, Any], reason: str) -> Ignored:
    """Return the event for a body, or a part of one, that can't be read."""
    return Ignored(
        provider="cloud",
        number_id="",
        delivery_key=content_key("", "unreadable", raw),
        raw=raw,
        reason=reason,
    )
