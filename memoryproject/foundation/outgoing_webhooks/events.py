"""The one way in which anything is told to integrators."""

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

from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.wakeup import endpoints_wake

BATCH = 5_000
# Names of what has changed; they are joined where a thing changes twice at once.
FIELDS = "fields"

# A removal waits until the transaction ends, so that no delivery is left without its endpoint;
# nothing else does.
_ENDPOINTS = "SELECT * FROM hooks_webhookendpoint WHERE enabled FOR KEY SHARE"

# Ten thousand memories may go at once: as arrays they take a third of the time that rows do.
_INSERT = """
INSERT INTO hooks_webhookdelivery (endpoint_id, event_id, event_type, data, chat_id,
    occurred_at, due_at, state, attempts, error)
SELECT told.*, clock_timestamp(), clock_timestamp(), 'pending', 0, ''
FROM unnest(%s::bigint[], %s::uuid[], %s::text[], %s::jsonb[], %s::uuid[]) AS told
"""
# An endpoint, the event's id, its type, its data as JSON, its chat.
_Told = tuple[int, UUID, str, str, UUID | None]


@dataclass(frozen=True)
class HookEvent:
    """Something that happened to ``subject``, a memory, session or turn. ``data``: ids, times
    and words of ours; never what somebody said or wrote, and no phone number."""

    type: str
    subject: UUID
    data: Mapping[str, Any] = field(default_factory=dict)
    chat_id: UUID | None = None


_gathering: ContextVar[list[HookEvent] | None] = ContextVar("gathering", default=None)


def hooks_raise(events: Sequence[HookEvent]) -> None:
    """Tell integrators of these events. Call it in the transaction of what happened. One query
    where nobody wants to know; the number of queries doesn't grow with the events."""
    gathered = _gathering.get()
    if gathered is not None:
        gathered.extend(events)
    elif events:
        _write(events)


@contextmanager
def hooks_gathered() -> Iterator[None]:
    """What is raised within is told at the end, a thing that changed twice once. Within a
    transaction; where the block fails nothing is told."""
    if _gathering.get() is not None:
        yield
        return
    events: list[HookEvent] = []
    mark = _gathering.set(events)
    try:
        yield
    finally:
        _gathering.reset(mark)
    hooks_raise(events)


def joined(events: Iterable[HookEvent]) -> list[HookEvent]:
    """Each thing once for each type of event, as it was at last, with all that has changed."""
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
    told: list[_Told] = []
    for event in joined(events) if endpoints else ():
        wanting = [one.pk for one in endpoints if one.wants(event.type, event.chat_id)]
        told += _told(event, wanting)
    if not told:
        return
    with connection.cursor() as cursor:
        for start in range(0, len(told), BATCH):
            columns = zip(*told[start : start + BATCH], strict=True)
            cursor.execute(_INSERT, [list(column) for column in columns])
    wake = partial(endpoints_wake, endpoint_ids=sorted({endpoint for endpoint, *_ in told}))
    transaction.on_commit(wake, robust=True)


def _told(event: HookEvent, endpoint_ids: Sequence[int]) -> list[_Told]:
    """A row for each endpoint, all under one id."""
    event_id, data = uuid.uuid4(), json.dumps(event.data)
    return [(key, event_id, event.type, data, event.chat_id) for key in endpoint_ids]
