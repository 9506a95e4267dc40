"""A receiver, and an endpoint that leads to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memoryproject.foundation.outgoing_webhooks.models import WebhookEndpoint
from tests.api.conftest import api as api
from tests.hooks.receiver import Receiver, endpoint_at


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def endpoint(db: None, receiver: Receiver) -> WebhookEndpoint:
    """Told everything."""
    return endpoint_at(f"{receiver.url}/hooks?for=crm")
