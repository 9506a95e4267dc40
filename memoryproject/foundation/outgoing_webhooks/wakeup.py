"""Queue jobs that send due deliveries."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from memoryproject.foundation.outgoing_webhooks.models import (
    DeliveryState,
    WebhookDelivery,
    WebhookEndpoint,
)
from memoryproject.foundation.outgoing_webhooks.signals import deliveries_due

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
