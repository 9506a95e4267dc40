"""Read the Cloud API's statuses of messages that we sent."""

from __future__ import annotations

from typing import Any

from memoryproject.foundation.integrations.whatsapp.cloud.content import error_details
from memoryproject.foundation.integrations.whatsapp.cloud.envelope import Change, party_of
from memoryproject.foundation.integrations.whatsapp.events import Event, StatusUpdate
from memoryproject.foundation.integrations.whatsapp.lenient import (
    first_text,
    mapping,
    moment,
    text_of,
    whole,
)

STATUSES = ("sent", "delivered", "read", "played", "failed")


def read_status(change: Change, status: Any) -> Event:
    """Return one member of ``statuses`` as an event."""
    found = mapping(status)
    wamid, reached = text_of(found.get("id")), text_of(found.get("status"))
    party, contacts = party_of(
        address=found.get("recipient_id"),
        user_ids=[found.get("recipient_user_id"), found.get("recipient_parent_user_id")],
        contacts=change.value.get("contacts"),
    )
    parts: dict[str, Any] = {"contacts": contacts} if contacts else {}
    raw = change.part(**parts, statuses=[status])
    if not wamid:
        return change.ignored(raw, "a status without an id")
    key = f"status:{wamid}:{reached}"
    if reached not in STATUSES:
        return change.ignored(raw, f"unknown status {reached!r}", key)
    in_group = found.get("recipient_type") == "group"
    if in_group:
        # Each participant of a group reads the message separately.
        key += ":" + first_text(found, "recipient_participant_id", "recipient_participant_user_id")
    errors = error_details(found.get("errors"))
    error = errors[0] if errors else {}
    return StatusUpdate(
        **change.head(raw, key),
        provider_message_id=wamid,
        status=reached,
        timestamp=moment(found.get("timestamp"), change.received_at),
        callback_id=text_of(found.get("biz_opaque_callback_data")) or None,
        party=None if in_group or not (party.phone or party.bsuid) else party,
        error_code=whole(error.get("code")),
        error_text=": ".join(error[key] for key in ("title", "details") if key in error),
    )
