"""Send an endpoint's due deliveries and record the results.

During the HTTP request no transaction is open and no row is locked. If a worker is killed, the
delivery stays pending and is sent again under the same id.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.integrations.hooks.base import Poster, PostError
from memoryproject.foundation.leases import Lease, LeaseLostError
from memoryproject.foundation.outgoing_webhooks.backoff import next_wait, pause
from memoryproject.foundation.outgoing_webhooks.delivery_leases import endpoint_claim
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoint_disable
from memoryproject.foundation.outgoing_webhooks.models import (
    DeliveryState,
    WebhookDelivery,
    WebhookEndpoint,
)
from memoryproject.foundation.outgoing_webhooks.payload import ChatName, body_of, headers_of
from memoryproject.foundation.outgoing_webhooks.wakeup import endpoints_abandoned, endpoints_wake

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
    chat_name: ChatName
    disable_after: timedelta
    luck: Callable[[], float] = random.random
    clock: Callable[[], datetime] = timezone.now


@dataclass(frozen=True)
class _Failure:
    error: str
    status: int | None = None
    retry_after: float | None = None


def endpoint_send(*, endpoint_id: int, dependencies: WebhookDependencies) -> int:
    """Send the endpoint's due deliveries; return the number that were delivered.

    It stops when none is due, one fails, or the job has used its time. The next job sends the rest.
    """
    WebhookEndpoint.objects.filter(pk=endpoint_id).update(asked_at=None)
    lease = endpoint_claim(endpoint_id=endpoint_id, now=dependencies.clock())
    if lease is None:
        return 0
    delivered = 0
    end = dependencies.clock() + BUDGET
    try:
        while (delivery := _due(endpoint_id, dependencies.clock())) is not None:
            if not _send(delivery, lease, dependencies):
                break
            delivered += 1
            if dependencies.clock() >= end:
                break
    except LeaseLostError as lost:
        logger.warning("%s", lost)
    finally:
        lease.release()
    # The rest of this endpoint's deliveries, and endpoints that waited while enough workers sent.
    endpoints_wake(endpoint_ids=endpoints_abandoned(dependencies.clock()))
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
    """Return the delivery that is due the longest; None if the endpoint was disabled meanwhile."""
    due = WebhookDelivery.objects.select_related("endpoint").filter(
        endpoint=endpoint_id,
        endpoint__enabled=True,
        state=DeliveryState.PENDING,
        due_at__lte=now,
    )
    return due.order_by("due_at", "id").first()


def _send(
    delivery: WebhookDelivery, lease: Lease[WebhookEndpoint], dependencies: WebhookDependencies
) -> bool:
    lease.renew()
    now = dependencies.clock()
    body = body_of(delivery, dependencies.chat_name)
    headers = headers_of(delivery, delivery.endpoint, body=body, now=now)
    try:
        posted = dependencies.poster.post(delivery.endpoint.url, headers=headers, body=body)
    except PostError as error:
        _failed(delivery, lease, dependencies, _Failure(error_text(error)))
        return False
    if 200 <= posted.status < 300:
        _succeeded(delivery, lease, dependencies, posted.status)
        return True
    retry_after = posted.retry_after if posted.status in BUSY else None
    failure = _Failure(
        ErrorText("webhook_status", status=posted.status), posted.status, retry_after
    )
    _failed(delivery, lease, dependencies, failure)
    return False


def _succeeded(
    delivery: WebhookDelivery,
    lease: Lease[WebhookEndpoint],
    dependencies: WebhookDependencies,
    status: int,
) -> None:
    now = dependencies.clock()
    _note(
        delivery,
        now,
        state=DeliveryState.DELIVERED,
        last_status=status,
        error="",
        finished_at=now,
    )
    lease.renew(
        last_success_at=now, failures=0, failing_since=None, paused_until=None, last_error=""
    )


def _failed(
    delivery: WebhookDelivery,
    lease: Lease[WebhookEndpoint],
    dependencies: WebhookDependencies,
    failure: _Failure,
) -> None:
    now = dependencies.clock()
    wait = next_wait(
        attempts=delivery.attempts + 1, luck=dependencies.luck(), retry_after=failure.retry_after
    )
    later: dict[str, Any] = (
        {"state": DeliveryState.FAILED, "finished_at": now}
        if wait is None or failure.status == GONE
        else {"due_at": now + wait}
    )
    _note(delivery, now, last_status=failure.status, error=failure.error, **later)
    endpoint = WebhookEndpoint.objects.get(pk=lease.row.pk)
    since = endpoint.failing_since or now
    left_alone = pause(failures=endpoint.failures + 1, retry_after=failure.retry_after)
    lease.renew(
        last_failure_at=now,
        last_error=failure.error,
        failing_since=since,
        failures=F("failures") + 1,
        paused_until=now + left_alone,
    )
    logger.warning("%s to webhook endpoint %s failed: %s", delivery, endpoint.pk, failure.error)
    if failure.status == GONE:
        reason = ErrorText("webhook_gone")
        endpoint_disable(endpoint_id=endpoint.pk, reason=reason)
    elif now - since >= dependencies.disable_after:
        days = (now - since).days
        reason = ErrorText("webhook_given_up", days=days, why=failure.error)
        endpoint_disable(endpoint_id=endpoint.pk, reason=reason)


def _note(delivery: WebhookDelivery, now: datetime, **changes: Any) -> None:
    """Record the result, unless another worker sent the delivery meanwhile or it is gone."""
    WebhookDelivery.objects.filter(pk=delivery.pk, state=DeliveryState.PENDING).update(
        attempts=F("attempts") + 1, last_attempt_at=now, **changes
    )
