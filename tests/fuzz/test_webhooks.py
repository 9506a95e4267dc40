"""Whatever a provider posts: an answer below 500, and nothing that could not be processed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from hypothesis import example, given

from sessions_app.models import InboundDelivery
from sessions_app.models.deliveries import UNPROCESSED
from tests.fuzz.damage import budget, damaged
from tests.unit.whatsapp.payloads import OWN, load, names
from tests.webhooks.conftest import configured
from tests.webhooks.posting import post_cloud, post_green

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

# A fixture of these tests that stands elsewhere.
__all__ = ["configured"]


def recorded(provider: str) -> list[Any]:
    return [load(OWN / provider / f"{name}.json") for name in names(OWN / provider)]


def check(post: Callable[..., Any], client: Client, raw: bytes) -> None:
    answer = post(client, raw)
    assert answer.status_code in (200, 400), (answer.status_code, answer.content[:500])
    unprocessed = InboundDelivery.objects.filter(outcome__startswith=UNPROCESSED)
    assert not unprocessed.exists(), list(unprocessed.values("event", "outcome", "raw"))


@budget(150)
@given(raw=damaged(recorded("cloud")))
@example(raw=b"[]")
@example(raw=b"")
@example(raw=b'{"object": "whatsapp_business_account", "entry": ' + b"[" * 100_000)
def test_any_damage_to_a_body_of_the_cloud_api_gets_an_answer(client: Client, raw: bytes) -> None:
    check(post_cloud, client, raw)


@budget(150)
@given(raw=damaged(recorded("green")))
@example(raw=b"null")
@example(raw=b'{"typeWebhook": "incomingMessageReceived", "timestamp": 1e400}')
def test_any_damage_to_a_body_of_green_api_gets_an_answer(client: Client, raw: bytes) -> None:
    check(post_green, client, raw)
