"""Green API's webhook: the token, the instance, broken bodies."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sessions_app.models import InboundDelivery, Message
from tests.webhooks.posting import GREEN, post_green

pytestmark = pytest.mark.django_db


def test_a_message_is_stored_once(client: Client, green_text: dict[str, Any]) -> None:
    assert post_green(client, green_text).status_code == 200
    assert post_green(client, green_text).status_code == 200
    assert Message.objects.count() == 1


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Bearer", "Bearer תו", "Basic dGVzdA=="])
def test_a_wrong_token_is_refused(client: Client, green_text: dict[str, Any], header: str) -> None:
    assert post_green(client, green_text, header).status_code == 401
    assert not InboundDelivery.objects.exists()


def test_nothing_without_a_token(client: Client, green_text: dict[str, Any], settings: Any) -> None:
    settings.GREEN_API_WEBHOOK_TOKEN = ""
    assert post_green(client, green_text).status_code == 401
    assert post_green(client, green_text, "Bearer ").status_code == 401


def test_another_instance(client: Client, green_text: dict[str, Any], settings: Any) -> None:
    settings.GREEN_API_ID_INSTANCE = "7"
    assert post_green(client, green_text).status_code == 200
    assert not Message.objects.exists()


def test_a_broken_body_is_a_clear_error(client: Client) -> None:
    assert post_green(client, b"{").status_code == 400
    assert post_green(client, b"x" * (3 * 1024 * 1024 + 1)).status_code == 413
    assert client.get(GREEN).status_code == 405
