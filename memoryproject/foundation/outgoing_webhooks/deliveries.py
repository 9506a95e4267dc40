"""Raise events, the only way to notify integrators; retry, erase and move their deliveries."""

import json
import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.leases import transaction_lock
from memoryproject.foundation.outgoing_webhooks import deliveries_due
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoint_get
from memoryproject.foundation.outgoing_webhooks.models import (
    ERASURES,
    TEST,
    DeliveryState,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
)

BATCH = 5_000


def delivery_test(*, endpoint_id: int, wait: timedelta = timedelta()) -> WebhookDelivery:
    """Queue a test delivery. Raises EndpointNotFoundError.

    ``wait``: no worker sends it before; the caller does.
    """
    endpoint = endpoint_get(endpoint_id)
    now = timezone.now()
    with transaction.atomic():
        delivery = WebhookDelivery.objects.create(
            endpoint=endpoint,
            event_id=uuid.uuid4(),
            event_type=TEST,
            data={"endpoint": endpoint.name},
            occurred_at=now,
            due_at=now + wait,
        )
        if not wait:
            transaction.on_commit(lambda: endpoints_wake(endpoint_ids=[endpoint.pk]), robust=True)
    return delivery


def deliveries_again(*, delivery_ids: Collection[int], actor: Actor) -> int:
    """Send these deliveries again, or now, under their existing ids and with new attempts.

    Deliveries to disabled endpoints wait until those are enabled. Returns the number of deliveries.
    """
    now = timezone.now()
    with transaction.atomic():
        rows = WebhookDelivery.objects.filter(pk__in=list(delivery_ids))
        endpoints = sorted(set(rows.order_by().values_list("endpoint_id", flat=True)))
        again = rows.update(
            state=DeliveryState.PENDING, attempts=0, due_at=now, finished_at=None, error=""
        )
        WebhookEndpoint.objects.filter(pk__in=endpoints, enabled=True).update(paused_until=None)
        audit_record("webhook.again", actor, "webhook delivery", deliveries=again)
        transaction.on_commit(lambda: endpoints_wake(endpoint_ids=endpoints), robust=True)
    return again


def events_drop(*, now: datetime, older_than: timedelta) -> int:
    """Delete old events from the log; return their number."""
    return WebhookEvent.objects.filter(occurred_at__lt=now - older_than).delete()[0]


def deliveries_drop(*, now: datetime, older_than: timedelta) -> int:
    """Delete deliveries that finished long ago or waited too long for a disabled endpoint.

    Returns the number of deliveries.
    """
    before = now - older_than
    waiting = Q(endpoint__enabled=False, finished_at__isnull=True, occurred_at__lt=before)
    old = WebhookDelivery.objects.filter(Q(finished_at__lt=before) | waiting)
    dropped = 0
    while keys := list(old.order_by().values_list("pk", flat=True)[:BATCH]):
        dropped += WebhookDelivery.objects.filter(pk__in=keys).delete()[0]
    return dropped


def chat_deliveries_erase(*, chat_id: UUID) -> int:
    """Erase a forgotten person's data from the deliveries.

    Pending deliveries about the person are no longer sent, except for the events that something is
    erased, and no delivery shows whose data it was about. Call it at the end of the transaction
    that forgets the person. Returns the number of rows that were changed or deleted.
    """
    of_chat = WebhookDelivery.objects.filter(chat_id=chat_id)
    untold = of_chat.filter(state=DeliveryState.PENDING).exclude(event_type__in=ERASURES)
    gone, _ = untold.delete()
    logged = WebhookEvent.objects.filter(chat_id=chat_id)
    logged.exclude(event_type__in=ERASURES).update(event_type="", data={})
    logged.update(chat_id=None)
    return gone + of_chat.update(chat_id=None)


def deliveries_move(*, from_chat: UUID, to_chat: UUID) -> int:
    """Move deliveries when two chats are merged as one person."""
    WebhookEvent.objects.filter(chat_id=from_chat).update(chat_id=to_chat)
    return WebhookDelivery.objects.filter(chat_id=from_chat).update(chat_id=to_chat)


# Queue jobs that send due deliveries.

logger = logging.getLogger(__name__)

# A job that was queued longer ago than this was lost.
JOB_IS_LOST_AFTER = timedelta(seconds=60)


def endpoints_wake(*, endpoint_ids: Iterable[int]) -> int:
    """Queue a job for each endpoint that has none waiting; return the number of queued jobs.

    Call it outside of a transaction.
    """
    return sum(endpoint_wake(key) for key in endpoint_ids)


def endpoint_wake(endpoint_id: int) -> bool:
    """Queue a job that sends the endpoint's deliveries, unless one waits; return whether queued."""
    now = timezone.now()
    unasked = Q(asked_at__isnull=True) | Q(asked_at__lte=now - JOB_IS_LOST_AFTER)
    if not WebhookEndpoint.objects.filter(unasked, pk=endpoint_id).update(asked_at=now):
        return False
    results = deliveries_due.send_robust(sender=WebhookEndpoint, endpoint_id=endpoint_id)
    for receiver, result in results:
        if isinstance(result, Exception):
            # The sweep finds it.
            logger.error("%r failed for endpoint %s.", receiver, endpoint_id, exc_info=result)
    return True


def endpoints_abandoned(now: datetime) -> list[int]:
    """Return the endpoints with due deliveries and no worker."""
    due = WebhookDelivery.objects.filter(
        endpoint=OuterRef("pk"), state=DeliveryState.PENDING, due_at__lte=now
    )
    ready = Q(paused_until__isnull=True) | Q(paused_until__lte=now)
    found = WebhookEndpoint.objects.filter(Exists(due), ready, enabled=True).order_by("asked_at")
    return [endpoint.pk for endpoint in found.abandoned(now)]


# Raise events: the only way to notify integrators.

# Names of changed parts. They are joined where an object changes twice in one block.
FIELDS = "fields"

# A removal of an endpoint waits until the transaction ends, so that no delivery is left without its
# endpoint. Nothing else waits.
_ENDPOINTS = "SELECT id FROM hooks_webhookendpoint WHERE enabled FOR KEY SHARE"
# In one statement with it: most events are those of messages, whose people wait.
_LOG = """
WITH logged AS (
    INSERT INTO hooks_webhookevent (event_id, event_type, data, chat_id, occurred_at)
    SELECT event_id, event_type, data, chat_id, %s
    FROM unnest(%s::uuid[], %s::text[], %s::jsonb[], %s::uuid[])
        WITH ORDINALITY AS event (event_id, event_type, data, chat_id, number)
    ORDER BY number
)
"""


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
    now = timezone.now()
    # The rows of all endpoints have the same id.
    named = [(uuid.uuid4(), event) for event in joined(events)]
    rows = [
        WebhookDelivery(
            endpoint=endpoint,
            event_id=event_id,
            event_type=event.type,
            data=event.data,
            chat_id=event.chat_id,
            occurred_at=now,
            due_at=now,
        )
        for endpoint in _logged(named, now)
        for event_id, event in named
        if endpoint.wants(event.type, event.chat_id)
    ]
    if not rows:
        return
    WebhookDelivery.objects.bulk_create(rows, batch_size=BATCH)
    endpoints = sorted({row.endpoint_id for row in rows})
    # No partial: Django looks for the name of a callback that failed.
    transaction.on_commit(lambda: endpoints_wake(endpoint_ids=endpoints), robust=True)


def _logged(named: Sequence[tuple[UUID, HookEvent]], now: datetime) -> list[WebhookEndpoint]:
    """Write the events into the log, if it is kept; return the endpoints that are enabled."""
    rows = [(key, event.type, json.dumps(event.data), event.chat_id) for key, event in named]
    columns = map(list, zip(*rows, strict=True))
    log = _LOG if settings.EVENT_LOG_DAYS else ""
    with connection.cursor() as cursor:
        cursor.execute(log + _ENDPOINTS, [now, *columns] if log else [])
        keys = [key for (key,) in cursor.fetchall()]
    return list(WebhookEndpoint.objects.filter(pk__in=keys)) if keys else []


# Read the log of events.

# An advisory lock number that nothing else uses.
_LOG_LOCK = 7_302_114
_NUMBER = """
UPDATE hooks_webhookevent SET seq = number.seq
FROM (
    SELECT id, (SELECT coalesce(max(seq), 0) FROM hooks_webhookevent)
        + row_number() OVER (ORDER BY id) AS seq
    FROM hooks_webhookevent WHERE seq IS NULL
) number
WHERE hooks_webhookevent.id = number.id
"""


def events_number() -> None:
    """Give a number to each committed event that has none, in order.

    One transaction at a time does it. What is committed later gets a higher number, so that no
    reader misses it.
    """
    if not WebhookEvent.objects.filter(seq=None).exists():
        return
    with transaction.atomic(), connection.cursor() as cursor:
        transaction_lock(_LOG_LOCK)
        cursor.execute(_NUMBER)
