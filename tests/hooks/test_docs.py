"""What docs/webhooks.md tells receivers to do is what works."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from memoryproject.foundation.audit.audit_events import COMMAND_LINE
from memoryproject.foundation.outgoing_webhooks.endpoints import (
    endpoint_rotate,
    secret_new,
    signature,
)
from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from memoryproject.foundation.outgoing_webhooks.webhook_events import delivery_test
from tests.hooks.receiver import Clock, Receiver, dependencies, send_all

pytestmark = pytest.mark.django_db
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"
Receive = Callable[[str, dict[str, str], bytes], Any]


def taken_from_the_document() -> list[Receive]:
    """The functions of its two examples."""
    found = []
    for source in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
        names: dict[str, Any] = {}
        exec(source, names)  # the document's own code
        found += [thing for name, thing in names.items() if name.startswith("receive")]
    return found


def test_there_are_two() -> None:
    assert len(taken_from_the_document()) == 2


@pytest.mark.parametrize("place", [0, 1])
def test_the_examples_take_what_is_ours_and_nothing_else(
    endpoint: WebhookEndpoint, receiver: Receiver, place: int
) -> None:
    receive = taken_from_the_document()[place]
    delivery_test(endpoint_id=endpoint.pk)
    send_all()
    (request,) = receiver.requests
    found = receive(endpoint.secret, request.headers, request.raw)
    assert found == json.loads(request.raw)
    assert found["type"] == "webhook.test"
    assert receive(secret_new(), request.headers, request.raw) is None
    assert receive(endpoint.secret, request.headers, request.raw + b" ") is None
    later = {**request.headers, "webhook-timestamp": str(int(time.time()) + 1)}
    assert receive(endpoint.secret, later, request.raw) is None
    other = {**request.headers, "webhook-id": "evt_1"}
    assert receive(endpoint.secret, other, request.raw) is None


@pytest.mark.parametrize("place", [0, 1])
def test_the_examples_take_both_secrets_while_one_is_changed(
    endpoint: WebhookEndpoint, receiver: Receiver, place: int
) -> None:
    receive = taken_from_the_document()[place]
    fresh = endpoint_rotate(endpoint_id=endpoint.pk, actor=COMMAND_LINE).secret
    delivery_test(endpoint_id=endpoint.pk)
    send_all()
    (request,) = receiver.requests
    assert receive(endpoint.secret, request.headers, request.raw)
    assert receive(fresh, request.headers, request.raw)


@pytest.mark.parametrize("place", [0, 1])
def test_the_examples_refuse_what_is_old(
    endpoint: WebhookEndpoint, receiver: Receiver, place: int
) -> None:
    receive = taken_from_the_document()[place]
    for minutes, taken in ((4, True), (-4, True), (6, False), (-6, False)):
        sent_at = int((timezone.now() + timedelta(minutes=minutes)).timestamp())
        body = b'{"type": "webhook.test"}'
        headers = {"webhook-id": "evt_1", "webhook-timestamp": str(sent_at)}
        headers["webhook-signature"] = signature(
            keys=[endpoint.secret], message_id="evt_1", timestamp=sent_at, body=body
        )
        assert (receive(endpoint.secret, headers, body) is not None) == taken


def test_a_retry_is_signed_with_its_own_time(endpoint: WebhookEndpoint, receiver: Receiver) -> None:
    """So that receivers don't take it for a replay."""
    clock = Clock(timezone.now() + timedelta(seconds=1))
    delivery_test(endpoint_id=endpoint.pk)
    receiver.status = 500
    send_all(dependencies(clock=clock))
    clock.on(seconds=60)
    receiver.status = 200
    send_all(dependencies(clock=clock))
    first, second = (int(request.headers["webhook-timestamp"]) for request in receiver.requests)
    assert second - first == 60
    assert len(set(receiver.ids())) == 1
    assert len(receiver.events(endpoint.secret)) == 2
