"""Who sends to an endpoint: one worker at a time, by a lease that ends."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from memoryproject.hooks.models import WebhookEndpoint
from memoryproject.lib.liveness import owner_is_gone, this_process

# Longer than a post: see integrations.hooks.http.
LEASE = timedelta(minutes=3)
# Workers have people to answer, too: so many of them send at once.
MOST_AT_ONCE = 2


class HookLeaseLostError(Exception):
    """Another worker sends to this endpoint now, or it is gone."""


@dataclass(frozen=True)
class HookLease:
    """The right to send to one endpoint."""

    endpoint_id: int
    token: UUID

    def renew(self, **changes: Any) -> None:
        """Hold on for another while, and note ``changes`` to the endpoint. Raises
        HookLeaseLostError."""
        held = WebhookEndpoint.objects.filter(pk=self.endpoint_id, lease_token=self.token)
        if not held.update(lease_until=timezone.now() + LEASE, **changes):
            raise HookLeaseLostError(f"endpoint {self.endpoint_id} is no longer ours")

    def release(self) -> None:
        WebhookEndpoint.objects.filter(pk=self.endpoint_id, lease_token=self.token).update(
            lease_token=None, lease_owner="", lease_until=None
        )


def endpoint_claim(
    *, endpoint_id: int, now: datetime, although_paused: bool = False
) -> HookLease | None:
    """Take the endpoint, or None: it is gone or disabled, paused, or somebody sends to it; or
    enough workers are sending."""
    endpoint = WebhookEndpoint.objects.filter(pk=endpoint_id, enabled=True).first()
    if endpoint is None or is_held(endpoint, now):
        return None
    paused = endpoint.paused_until is not None and endpoint.paused_until > now
    if paused and not although_paused:
        return None
    taken = WebhookEndpoint.objects.filter(lease_token__isnull=False)
    if sum(is_held(other, now) for other in taken) >= MOST_AT_ONCE:
        return None
    lease = HookLease(endpoint_id, uuid.uuid4())
    unchanged = WebhookEndpoint.objects.filter(
        pk=endpoint_id, enabled=True, lease_token=endpoint.lease_token
    )
    claimed = unchanged.update(
        lease_token=lease.token, lease_owner=this_process(), lease_until=timezone.now() + LEASE
    )
    return lease if claimed else None


def is_held(endpoint: WebhookEndpoint, now: datetime) -> bool:
    """Whether a living worker has the endpoint."""
    if endpoint.lease_token is None or endpoint.lease_until is None:
        return False
    return endpoint.lease_until > now and not owner_is_gone(endpoint.lease_owner)
