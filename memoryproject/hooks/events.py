"""The one way in which anything is told to integrators."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memoryproject.hooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.hooks.waking import endpoints_wake

BATCH = 1_000
# Names of what has changed; they are joined where a thing changes twice at once.
FIELDS = "fields"

# A removal waits until the transaction ends, so that no delivery is left without its endpoint;
# nothing else does.
_ENDPOINTS = "SELECT * FROM hooks_webhookendpoint WHERE enabled FOR KEY SHARE"


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
    if not endpoints:
        return
    now = timezone.now()
    rows = [
        row
        for event in joined(events)
        for row in _rows(
            event, [one for one in endpoints if one.wants(event.type, event.chat_id)], now
        )
    ]
    if not rows:
        return
    WebhookDelivery.objects.bulk_create(rows, batch_size=BATCH)
    told = sorted({row.endpoint_id for row in rows})
    transaction.on_commit(partial(endpoints_wake, endpoint_ids=told), robust=True)


def _rows(
    event: HookEvent, endpoints: Sequence[WebhookEndpoint], now: datetime
) -> list[WebhookDelivery]:
    event_id = uuid.uuid4()
    return [
        WebhookDelivery(
            endpoint=endpoint,
            event_id=event_id,
            event_type=event.type,
            data=dict(event.data),
            chat_id=event.chat_id,
            occurred_at=now,
            due_at=now,
        )
        for endpoint in endpoints
    ]
