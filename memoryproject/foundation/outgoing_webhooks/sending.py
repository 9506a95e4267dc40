"""Send an endpoint's due deliveries and record the results.

During the HTTP request no transaction is open and no row is locked. If a worker is killed, the
delivery stays pending and is sent again under the same id.
"""

import json
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.network.addresses import Poster, PostError
from memoryproject.foundation.leases import Lease, LeaseLostError
from memoryproject.foundation.outgoing_webhooks import deliveries, endpoints
from memoryproject.foundation.outgoing_webhooks.models import (
    DeliveryState,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
)
from memoryproject.foundation.text.uuids import iso_utc

logger = logging.getLogger(__name__)

# For one job, so that workers also have time for people's messages.
BUDGET = timedelta(seconds=20)
GONE = 410
# Statuses whose response may state when to retry.
BUSY = (429, 503)


@dataclass(frozen=True)
class WebhookDependencies:
    """The dependencies of sending.

    ``disable_after``: an endpoint that fails for this long is disabled. ``luck`` (0 to 1) spreads
    retries.
    """

    poster: Poster
    chat_name: "ChatName"
    disable_after: timedelta
    luck: Callable[[], float] = random.random
    clock: Callable[[], datetime] = timezone.now


def endpoint_send(*, endpoint_id: int, dependencies: WebhookDependencies) -> int:
    """Send the endpoint's due deliveries; return the number that were delivered.

    It stops when none is due, the endpoint is paused, or the job has used its time. The next job
    sends the rest.
    """
    WebhookEndpoint.objects.filter(pk=endpoint_id).update(asked_at=None)
    lease = endpoint_claim(endpoint_id=endpoint_id, now=dependencies.clock())
    if lease is None:
        return 0
    delivered = 0
    end = dependencies.clock() + BUDGET
    try:
        while (delivery := _due(endpoint_id, dependencies.clock())) is not None:
            delivered += _send(delivery, lease, dependencies)
            if dependencies.clock() >= end:
                break
    except LeaseLostError as lost:
        logger.warning("%s", lost)
    finally:
        lease.release()
    # The rest of this endpoint's deliveries, and endpoints that waited while enough workers sent.
    deliveries.endpoints_wake(endpoint_ids=deliveries.endpoints_abandoned(dependencies.clock()))
    return delivered


def delivery_send(*, delivery: WebhookDelivery, dependencies: WebhookDependencies) -> bool | None:
    """Send this delivery now, even if its endpoint is paused; return whether it was delivered.

    None: it was sent in the meantime, the endpoint is disabled or gone, a worker sends to it, or
    enough workers are sending.
    """
    lease = endpoint_claim(
        endpoint_id=delivery.endpoint_id, now=dependencies.clock(), although_paused=True
    )
    if lease is None:
        return None
    pending = WebhookDelivery.objects.select_related("endpoint").filter(
        pk=delivery.pk, state=DeliveryState.PENDING
    )
    try:
        found = pending.first()
        return None if found is None else _send(found, lease, dependencies)
    finally:
        lease.release()


def _due(endpoint_id: int, now: datetime) -> WebhookDelivery | None:
    """Return the delivery that is due the longest; None if the endpoint is disabled or paused."""
    pending = WebhookDelivery.objects.filter(endpoint=endpoint_id, state=DeliveryState.PENDING)
    ready = Q(endpoint__paused_until__isnull=True) | Q(endpoint__paused_until__lte=now)
    due = pending.filter(ready, endpoint__enabled=True, due_at__lte=now)
    return due.select_related("endpoint").order_by("due_at", "id").first()


def _send(
    delivery: WebhookDelivery, lease: Lease[WebhookEndpoint], dependencies: WebhookDependencies
) -> bool:
    lease.renew()
    now = dependencies.clock()
    body = body_of(delivery, dependencies.chat_name)
    headers = headers_of(delivery, delivery.endpoint, body=body, now=now)
    try:
        posted = dependencies.poster.post(delivery.endpoint.url, headers=headers, body=body)
    except PostError as failure:
        _failed(delivery, lease, dependencies, error_text(failure))
        return False
    status = posted.status
    if not 200 <= status < 300:
        retry_after = posted.retry_after if status in BUSY else None
        error = ErrorText("webhook_status", status=status)
        _failed(delivery, lease, dependencies, error, status=status, retry_after=retry_after)
        return False
    now = dependencies.clock()
    delivered = DeliveryState.DELIVERED
    _note(delivery, now, state=delivered, last_status=status, error="", finished_at=now)
    lease.renew(
        last_success_at=now, failures=0, failing_since=None, paused_until=None, last_error=""
    )
    return True


def _failed(
    delivery: WebhookDelivery,
    lease: Lease[WebhookEndpoint],
    dependencies: WebhookDependencies,
    error: str,
    *,
    status: int | None = None,
    retry_after: float | None = None,
) -> None:
    now = dependencies.clock()
    wait = next_wait(
        attempts=delivery.attempts + 1, luck=dependencies.luck(), retry_after=retry_after
    )
    later: dict[str, Any] = (
        {"state": DeliveryState.FAILED, "finished_at": now}
        if wait is None or status == GONE
        else {"due_at": now + wait}
    )
    _note(delivery, now, last_status=status, error=error, **later)
    endpoint = WebhookEndpoint.objects.get(pk=lease.row.pk)
    since = endpoint.failing_since or now
    left_alone = pause(
        failures=endpoint.failures + 1, is_answered=status is not None, retry_after=retry_after
    )
    lease.renew(
        last_failure_at=now,
        last_error=error,
        failing_since=since,
        failures=F("failures") + 1,
        paused_until=now + left_alone if left_alone else None,
    )
    logger.warning("%s to webhook endpoint %s failed: %s", delivery, endpoint.pk, error)
    if status == GONE:
        endpoints.endpoint_disable(endpoint_id=endpoint.pk, reason=ErrorText("webhook_gone"))
    elif now - since >= dependencies.disable_after:
        reason = ErrorText("webhook_given_up", days=(now - since).days, why=error)
        endpoints.endpoint_disable(endpoint_id=endpoint.pk, reason=reason)


def _note(delivery: WebhookDelivery, now: datetime, **changes: Any) -> None:
    """Record the result, unless another worker sent the delivery meanwhile or it is gone."""
    WebhookDelivery.objects.filter(pk=delivery.pk, state=DeliveryState.PENDING).update(
        attempts=F("attempts") + 1, last_attempt_at=now, **changes
    )


# Calculate when a failed delivery is retried, and how long a failing endpoint is paused.


# As Standard Webhooks suggests. The first attempt is immediate.
WAITS = (
    *(timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30)),
    *(timedelta(hours=hours) for hours in (2, 5, 10, 14, 20, 24)),
)
# So that deliveries that failed together aren't retried together.
JITTER = 0.2

FIRST_PAUSE = timedelta(seconds=5)
MAX_PAUSE = timedelta(minutes=5)
# Failures in a row that pause nothing if the endpoint answered: it may refuse one event, or be
# short of something for a moment.
TOLERATED = 2
# A receiver may ask for a wait up to this length.
MAX_RETRY_AFTER = timedelta(hours=24)


def next_wait(*, attempts: int, luck: float, retry_after: float | None = None) -> timedelta | None:
    """Return the wait after this many attempts (1 or more); None after the last one.

    ``luck`` is from 0 to 1. The wait is never shorter than the receiver asked for (seconds).
    """
    if attempts > len(WAITS):
        return None
    return max(WAITS[attempts - 1] * (1 + JITTER * luck), _requested_wait(retry_after))


def pause(*, failures: int, is_answered: bool, retry_after: float | None = None) -> timedelta:
    """Return how long an endpoint gets nothing after this many failures in a row.

    The pause grows each time, so that an endpoint that is down costs one attempt, not one attempt
    for each delivery. One that doesn't answer keeps a worker waiting: it is paused at once.
    """
    counted = failures - TOLERATED
    if counted <= 0 and is_answered and retry_after is None:
        return timedelta()
    own = min(FIRST_PAUSE * 2 ** min(max(counted - 1, 0), 20), MAX_PAUSE)
    return max(own, _requested_wait(retry_after))


def _requested_wait(retry_after: float | None) -> timedelta:
    return min(timedelta(seconds=min(retry_after or 0.0, 10**6)), MAX_RETRY_AFTER)


# Claim endpoints, so that one worker at a time sends to an endpoint.


# Workers must answer people, too, so only this many of them send at once.
MAX_AT_ONCE = 2


def endpoint_claim(
    *, endpoint_id: int, now: datetime, although_paused: bool = False
) -> Lease[WebhookEndpoint] | None:
    """Claim the endpoint, or return None.

    None: it is gone, disabled or paused, a worker sends to it, or enough workers are sending.
    """
    endpoint = WebhookEndpoint.objects.filter(pk=endpoint_id, enabled=True).first()
    if endpoint is None or len(WebhookEndpoint.objects.all().held(now)) >= MAX_AT_ONCE:
        return None
    if endpoint.paused_until and endpoint.paused_until > now and not although_paused:
        return None
    token = WebhookEndpoint.objects.filter(enabled=True).claim(endpoint, now=now)
    return Lease(endpoint, token) if token else None


# Build the body and the headers of a delivery.


# Returns the name under which integrators know a chat; None if the chat is gone.
ChatName = Callable[[UUID], str | None]


def body_of(delivery: WebhookDelivery, chat_name: ChatName) -> bytes:
    """Return the payload.

    The chat's name, which may be a phone number, is looked up now. No delivery stores it, and a
    forgotten chat has none.
    """
    chat_id = delivery.chat_id
    payload = payload_of(delivery, None if chat_id is None else chat_name(chat_id))
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()


def payload_of(event: WebhookDelivery | WebhookEvent, whatsapp_chat: str | None) -> dict[str, Any]:
    """Return what receivers and readers of the log are told of an event in this chat."""
    return {
        "type": event.event_type,
        "timestamp": iso_utc(event.occurred_at),
        "data": {**event.data, "whatsapp_chat": whatsapp_chat},
    }


def headers_of(
    delivery: WebhookDelivery, endpoint: WebhookEndpoint, *, body: bytes, now: datetime
) -> Mapping[str, str]:
    """Return the headers of Standard Webhooks, signed now."""
    timestamp = int(now.timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": "whatsapp-memory-webhooks/1",
        "webhook-id": delivery.message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": endpoints.signature(
            keys=endpoint.keys(now), message_id=delivery.message_id, timestamp=timestamp, body=body
        ),
    }
