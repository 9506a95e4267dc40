"""Read the Cloud API's changes of a person's addresses: a new number, a new user id."""

from __future__ import annotations

import re
from typing import Any

from memoryproject.foundation.integrations.whatsapp.cloud.envelope import Change, bsuid_of, party_of
from memoryproject.foundation.integrations.whatsapp.events import AddressChanged, Event, Party
from memoryproject.foundation.integrations.whatsapp.lenient import (
    first_text,
    mapping,
    moment,
    phone_digits,
    text_of,
)

# The names of a change of address; "customer_…" is the older spelling.
_CHANGES = (
    "user_changed_number",
    "customer_changed_number",
    "user_changed_user_id",
    "customer_changed_user_id",
)
_FROM_TO = re.compile(r"from (\S+) to (\S+)")


def read_system(change: Change, message: dict[str, Any], head: dict[str, Any]) -> Event:
    """Convert a message of type ``system`` to an AddressChanged, or to Ignored with the reason."""
    system = mapping(message.get("system"))
    kind = text_of(system.get("type"))
    key = f"message:{text_of(message.get('id'))}"
    if kind not in _CHANGES:
        return change.ignored(head["raw"], f"system message {kind or 'without a type'}", key)
    old, new = _old(message, system), _new(system)
    if not old.addresses() or not new.addresses():
        return change.ignored(head["raw"], f"{kind} that names only one address", key)
    return AddressChanged(
        **head, old=old, new=new, timestamp=moment(message.get("timestamp"), change.received_at)
    )


def _old(message: dict[str, Any], system: dict[str, Any]) -> Party:
    written = _FROM_TO.search(text_of(system.get("body")))
    before = written.group(1) if written else ""
    current = _new_user_id(system)
    named = bsuid_of(
        system.get("previous_user_id"),
        system.get("old_user_id"),
        mapping(system.get("user_id")).get("previous"),
        before,
        message.get("from_user_id"),
        message.get("from"),
    )
    phone = phone_digits(message.get("from")) or phone_digits(system.get("customer"))
    return Party(
        phone=phone or phone_digits(before) or None,
        bsuid=named if named != current else None,
    )


def _new(system: dict[str, Any]) -> Party:
    written = _FROM_TO.search(text_of(system.get("body")))
    after = written.group(2).rstrip(".") if written else ""
    phone = phone_digits(first_text(system, "wa_id", "new_wa_id")) or phone_digits(after)
    return Party(phone=phone or None, bsuid=_new_user_id(system) or bsuid_of(after) or None)


def _new_user_id(system: dict[str, Any]) -> str:
    return bsuid_of(
        system.get("user_id"),
        system.get("new_user_id"),
        mapping(system.get("user_id")).get("current"),
    )


def read_user_id_update(change: Change, update: Any) -> Event:
    """Return one member of ``user_id_update``: a person's old and new business-scoped id."""
    found = mapping(update)
    ids = mapping(found.get("user_id"))
    current, previous = bsuid_of(ids.get("current")), bsuid_of(ids.get("previous"))
    party, contacts = party_of(
        address=found.get("wa_id"), user_ids=[current], contacts=change.value.get("contacts")
    )
    raw = change.part(contacts=contacts, user_id_update=[update])
    if not (current and previous):
        return change.ignored(raw, "user_id_update that doesn't name both ids")
    return AddressChanged(
        **change.head(raw),
        old=Party(bsuid=previous),
        new=party,
        timestamp=moment(found.get("timestamp"), change.received_at),
    )
