"""Claim endpoints, so that one worker at a time sends to an endpoint."""

from __future__ import annotations

from datetime import datetime

from memoryproject.foundation.leases import Lease
from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint

# Workers must answer people, too, so only this many of them send at once.
MAX_AT_ONCE = 2


def endpoint_claim(
    *, endpoint_id: int, now: datetime, although_paused: bool = False
) -> Lease[WebhookEndpoint] | None:
    """Claim the endpoint, or return None.

    None: it is gone, disabled or paused, a worker sends to it, or enough workers are sending.
    """
    endpoint = WebhookEndpoint.objects.filter(pk=endpoint_id, enabled=True).first()
    if endpoint is None:
        return None
    paused = endpoint.paused_until is not None and endpoint.paused_until > now
    if paused and not although_paused:
        return None
    if len(WebhookEndpoint.objects.all().held(now)) >= MAX_AT_ONCE:
        return None
    token = WebhookEndpoint.objects.filter(enabled=True).claim(endpoint, now=now)
    return Lease(endpoint, token) if token else None
