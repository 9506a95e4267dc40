"""Convert a Cloud API webhook body to events: every entry, change, message and status."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from memoryproject.foundation.integrations.whatsapp.cloud.envelope import Change, unreadable
from memoryproject.foundation.integrations.whatsapp.cloud.messages import read_message
from memoryproject.foundation.integrations.whatsapp.cloud.notices import (
    read_account_field,
    read_error,
)
from memoryproject.foundation.integrations.whatsapp.cloud.statuses import read_status
from memoryproject.foundation.integrations.whatsapp.cloud.system import read_user_id_update
from memoryproject.foundation.integrations.whatsapp.events import Event
from memoryproject.foundation.integrations.whatsapp.lenient import (
    listed,
    mapping,
    storable,
    text_of,
)

_ECHO_FIELDS = ("smb_message_echoes", "message_echoes")


def parse_cloud(payload: Any, *, received_at: datetime | None = None) -> list[Event]:
    """Return all events of a webhook body in order, at least one (Ignored, if nothing else).

    ``received_at`` (now, if not given; aware) replaces timestamps that can't be read. Never raises,
    for any JSON payload.
    """
    received = received_at or datetime.now(timezone.utc)
    body = storable(payload)
    if not isinstance(body, dict):
        return [unreadable({"payload": body}, "the body is not an object")]
    events: list[Event] = []
    for entry in listed(body.get("entry")):
        events.extend(_entry_events(entry, received))
    return events or [unreadable(body, "the body has no entry")]


def _entry_events(entry: Any, received_at: datetime) -> list[Event]:
    events: list[Event] = []
    for found in listed(mapping(entry).get("changes")):
        if not isinstance(found, dict) or not isinstance(found.get("value"), dict):
            raw = {"entry": [{**entry, "changes": [found]}]}
            events.append(unreadable(raw, "a change without a value"))
            continue
        change = Change(
            entry=entry,
            field=text_of(found.get("field")),
            value=found["value"],
            received_at=received_at,
        )
        events.extend(_change_events(change))
    return events or [unreadable({"entry": [entry]}, "an entry without changes")]


def _change_events(change: Change) -> list[Event]:
    value = change.value
    events: list[Event] = []
    if change.field == "messages":
        events += [read_message(change, item) for item in listed(value.get("messages"))]
        events += [read_status(change, item) for item in listed(value.get("statuses"))]
        events += [read_error(change, item) for item in listed(value.get("errors"))]
        return events or [change.ignored(change.whole(), "a change with nothing in it")]
    if change.field in _ECHO_FIELDS:
        echoes = listed(value.get("message_echoes"))
        events += [read_message(change, item, echo=True) for item in echoes]
    if change.field == "user_id_update":
        updates = listed(value.get("user_id_update"))
        events += [read_user_id_update(change, item) for item in updates]
    return events or [read_account_field(change)]
