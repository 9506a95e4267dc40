"""A receiver of webhooks on 127.0.0.1, the tools to send to it, and what it is told of."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone
from standardwebhooks import Webhook

from memories_app.facts.validation import NewMemory
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, SYSTEM
from memoryproject.foundation.integrations.loopback.httpd import Answer, Request
from memoryproject.foundation.integrations.network.addresses import AddressRules, Poster
from memoryproject.foundation.integrations.network.checked_transport import HttpPoster
from memoryproject.foundation.outgoing_webhooks.endpoints import endpoint_create
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.sending import WebhookDependencies, endpoint_send
from sessions_app.conversations.chat_queries import chat_name
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.loopback.httpd import FaultyServer

LOOPBACK_ALLOWED = AddressRules.of(["127.0.0.0/8"], allow_http=True)
DISABLE_AFTER = timedelta(days=5)


class Receiver(FaultyServer):
    """Answers each post with ``status``. ``tls``: with this certificate."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.status = 204
        self.headers: dict[str, str] = {}
        self.on_post: Callable[[], None] = lambda: None
        if tls is not None:
            self._httpd.socket = tls.wrap_socket(self._httpd.socket, server_side=True)

    @property
    def port(self) -> int:
        return int(self._httpd.server_address[1])

    def handle(self, request: Request) -> Answer:
        self.on_post()
        return Answer(self.status, {}, self.headers, content=b"")

    def events(self, secret: str) -> list[dict[str, Any]]:
        """What was received, each verified by the package that receivers use."""
        return [verified(request, secret) for request in self.requests]

    def ids(self) -> list[str]:
        return [request.headers["webhook-id"] for request in self.requests]


def verified(request: Request, secret: str) -> dict[str, Any]:
    found: dict[str, Any] = Webhook(secret).verify(request.raw, request.headers)
    assert found == json.loads(request.raw)
    return found


@dataclass
class Clock:
    """A time that goes on when it is told to."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now

    def on(self, **by: float) -> None:
        self.now += timedelta(**by)


def dependencies(poster: Poster | None = None, **changes: Any) -> WebhookDependencies:
    """Over real HTTP to this machine unless told otherwise; retries without scatter."""
    changes.setdefault("luck", lambda: 0.0)
    changes.setdefault("disable_after", DISABLE_AFTER)
    return WebhookDependencies(
        poster=poster or HttpPoster(LOOPBACK_ALLOWED), chat_name=chat_name, **changes
    )


def endpoint_at(url: str, name: str = "crm", **changes: Any) -> WebhookEndpoint:
    return endpoint_create(
        name=name, url=url, rules=LOOPBACK_ALLOWED, actor=COMMAND_LINE, **changes
    )


def send_all(sending: WebhookDependencies | None = None) -> int:
    """What the workers do: send all that is due; how many were delivered."""
    chosen = sending or dependencies()
    keys = list(WebhookEndpoint.objects.order_by("pk").values_list("pk", flat=True))
    return sum(endpoint_send(endpoint_id=key, dependencies=chosen) for key in keys)


def pending() -> list[WebhookDelivery]:
    return list(WebhookDelivery.objects.filter(state="pending").order_by("id"))


def started() -> Clock:
    """A little ahead, so that all that is stored by the real time is due."""
    return Clock(timezone.now() + timedelta(minutes=1))


def remember(count: int = 1) -> list[Any]:
    wanted = [NewMemory(content=f"Fact {uuid4()}", visibility="owner") for _ in range(count)]
    found = memories_remember(memories=wanted, embedder=HashingEmbedder(), actor=SYSTEM)
    return [one.memory for one in found]


def one() -> WebhookDelivery:
    return WebhookDelivery.objects.get()
