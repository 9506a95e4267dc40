"""Raise events: the only way to notify integrators."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from memoryproject.foundation.outgoing_webhooks.deliveries import endpoints_wake
from memoryproject.foundation.outgoing_webhooks.kinds import ERASURES
from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint

BATCH = 5_000
# Names of changed parts. They are joined where an object changes twice in one block.
FIELDS = "fields"

# A removal of an endpoint waits until the transaction ends, so that no delivery is left without its
# endpoint. Nothing else waits.
_ENDPOINTS = "SELECT * FROM hooks_webhookendpoint WHERE enabled FOR KEY SHARE"

# Ten thousand memories may be forgotten at once: arrays take a third of the time that rows take.
_INSERT = """
INSERT INTO hooks_webhookdelivery (endpoint_id, event_id, event_type, data, chat_id,
    occurred_at, due_at, state, attempts, error)
SELECT told.*, clock_timestamp(), clock_timestamp(), 'pending', 0, ''
FROM unnest(%s::bigint[], %s::uuid[], %s::text[], %s::jsonb[], %s::uuid[]) AS told
"""
# An endpoint, the event's id, its type, its data as JSON, its chat.
_EventRow = tuple[int, UUID, str, str, UUID | None]


@dataclass(frozen=True)
class HookEvent:
    """An event that happened to ``subject``, a memory, session or turn.

    ``data``: ids, times and words of ours; never what a person said or wrote, and no phone number.
    """

    type: str
    subject: UUID
    data: Mapping[str, Any] = field(default_factory=dict)
    chat_id: UUID | None = None


_gathering: ContextVar[list[HookEvent] | None] = ContextVar("gathering", default=None)


def hooks_raise(events: Sequence[HookEvent]) -> None:
    """Queue these events for delivery. Call it in the transaction of the change.

    It makes one query if no endpoint wants the events. The number of queries doesn't grow with the
    number of events.
    """
    gathered = _gathering.get()
    if gathered is not None:
        gathered.extend(events)
    elif events:
        _write(events)


@contextmanager
def hooks_gathered(*, receipt_id: UUID | None = None) -> Iterator[None]:
    """Collect the events raised within the block; raise each object's changes once at its end.

    ``receipt_id``: the receipt of the erasure within the block; events of erasures name it.
    Use it within a transaction. If the block fails, no event is raised.
    """
    events: list[HookEvent] = []
    mark = _gathering.set(events)
    try:
        yield
    finally:
        _gathering.reset(mark)
    if receipt_id is not None:
        named = {"receipt_id": str(receipt_id)}
        events = [
            replace(event, data={**event.data, **named}) if event.type in ERASURES else event
            for event in events
        ]
    hooks_raise(events)


def joined(events: Iterable[HookEvent]) -> list[HookEvent]:
    """Return one event for each object and event type: its last state with all its changes."""
    found: dict[tuple[str, UUID], HookEvent] = {}
    for event in events:
        key = (event.type, event.subject)
        earlier = found.get(key)
        if earlier is not None and FIELDS in earlier.data:
            names = sorted({*earlier.data[FIELDS], *event.data.get(FIELDS, ())})
            event = replace(event, data={**event.data, FIELDS: names})
        found[key] = event
    return list(found.values())


def _write(events: Sequence[HookEvent]) -> None:
    endpoints = list(WebhookEndpoint.objects.raw(_ENDPOINTS))
    rows: list[_EventRow] = []
    for event in joined(events) if endpoints else ():
        # The rows of all endpoints have the same id.
        event_id, data = uuid.uuid4(), json.dumps(event.data)
        rows += [
            (endpoint.pk, event_id, event.type, data, event.chat_id)
            for endpoint in endpoints
            if endpoint.wants(event.type, event.chat_id)
        ]
    if not rows:
        return
    with connection.cursor() as cursor:
        for start in range(0, len(rows), BATCH):
            columns = zip(*rows[start : start + BATCH], strict=True)
            cursor.execute(_INSERT, [list(column) for column in columns])
    wake = partial(endpoints_wake, endpoint_ids=sorted({endpoint for endpoint, *_ in rows}))
    transaction.on_commit(wake, robust=True)
