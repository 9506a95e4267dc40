"""The Cloud API's webhook: handshake, signature over the raw body, sizes and broken bodies."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from memoryproject.foundation.integrations.loopback.providers import body_bytes, sign
from sessions_app.models import InboundDelivery, Message
from tests.webhooks.posting import CLOUD, SECRET, post_cloud

HANDSHAKE = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}
THREE_MB = 3 * 1024 * 1024


def padded(payload: dict[str, Any], size: int) -> bytes:
    """The payload with a field that nobody knows, exactly that many bytes long."""
    bare = body_bytes({**payload, "padding": ""})
    return body_bytes({**payload, "padding": "x" * (size - len(bare))})


@pytest.mark.django_db
def test_the_handshake_gives_the_bare_challenge_back(client: Client) -> None:
    answer = client.get(CLOUD, {**HANDSHAKE, "hub.verify_token": "test-verify-token"})
    assert (answer.status_code, answer.content) == (200, b"1158201444")
    assert answer["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("token", ["wrong", "", "טוקן"])
def test_a_handshake_with_another_token_is_refused(client: Client, token: str) -> None:
    assert client.get(CLOUD, {**HANDSHAKE, "hub.verify_token": token}).status_code == 403


@pytest.mark.parametrize("mode", ["", "unsubscribe", "SUBSCRIBE"])
def test_a_handshake_that_asks_for_something_else_is_refused(client: Client, mode: str) -> None:
    asked = {**HANDSHAKE, "hub.mode": mode, "hub.verify_token": "test-verify-token"}
    answer = client.get(CLOUD, asked)
    assert answer.status_code == 403
    assert b"1158201444" not in answer.content


@pytest.mark.parametrize("challenge", [{}, {"hub.challenge": ""}])
def test_no_challenge_is_refused(client: Client, challenge: dict[str, str]) -> None:
    asked = {"hub.mode": "subscribe", "hub.verify_token": "test-verify-token", **challenge}
    answer = client.get(CLOUD, asked)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["detail"] == "hub.challenge is missing."


def test_a_handshake_is_refused_while_no_token_is_set(client: Client, settings: Any) -> None:
    settings.WHATSAPP_CLOUD_VERIFY_TOKEN = ""
    assert client.get(CLOUD, {**HANDSHAKE, "hub.verify_token": ""}).status_code == 403


@pytest.mark.django_db
def test_a_signed_message_is_stored(client: Client, cloud_text: dict[str, Any]) -> None:
    assert post_cloud(client, cloud_text).status_code == 200
    assert Message.objects.get().kind == "text"


@pytest.mark.django_db
@pytest.mark.parametrize("signature", ["", "sha256=" + "0" * 64, "sha256=é", "nonsense"])
def test_a_wrong_signature(client: Client, cloud_text: dict[str, Any], signature: str) -> None:
    answer = post_cloud(client, cloud_text, signature)
    assert answer.status_code == 401
    assert answer.json()["errors"][0]["code"] == "not_authenticated"
    assert not InboundDelivery.objects.exists()


@pytest.mark.django_db
def test_nothing_without_a_secret(
    client: Client, cloud_text: dict[str, Any], settings: Any
) -> None:
    settings.WHATSAPP_CLOUD_APP_SECRET = ""
    assert post_cloud(client, cloud_text).status_code == 401
    assert post_cloud(client, cloud_text, sign("", body_bytes(cloud_text))).status_code == 401


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body", [b"{", b"", b"[]", b'"text"', b"\xff\xfe", b'{"a": NaN}', b"[" * 9999]
)
def test_a_broken_body_is_a_clear_error(client: Client, body: bytes) -> None:
    answer = post_cloud(client, body)
    assert answer.status_code == 400
    assert answer.json()["type"] == "validation_error"


@pytest.mark.django_db
def test_three_megabytes_are_the_most(client: Client, cloud_text: dict[str, Any]) -> None:
    assert post_cloud(client, padded(cloud_text, THREE_MB)).status_code == 200
    assert post_cloud(client, padded(cloud_text, THREE_MB + 1)).status_code == 413
    assert Message.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body", [{}, {"object": "page"}, {"entry": [{"changes": [{"field": "new"}]}]}]
)
def test_what_is_unknown_is_accepted(client: Client, body: dict[str, Any]) -> None:
    assert post_cloud(client, body).status_code == 200


@pytest.mark.django_db
def test_another_number_of_the_app(
    client: Client, cloud_text: dict[str, Any], settings: Any
) -> None:
    settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = "999"
    assert post_cloud(client, cloud_text).status_code == 200
    assert not Message.objects.exists()


@pytest.mark.django_db
def test_text_that_no_database_takes_loses_nothing(client: Client) -> None:
    raw = (
        b'{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages",'
        b'"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550100001",'
        b'"phone_number_id":"100000000000001"},"contacts":[{"profile":{"name":"T"},"wa_id":'
        b'"15550100123"}],"messages":[{"from":"15550100123","id":"wamid.X","timestamp":"1760659222",'
        b'"type":"text","text":{"body":"a\\ud800b\\u0000c"}}]}}]}]}'
    )
    assert post_cloud(client, raw, sign(SECRET, raw)).status_code == 200
    stored = Message.objects.get().content
    assert stored.startswith("a")
    assert stored.endswith("c")


def test_other_methods_are_refused(client: Client) -> None:
    assert client.put(CLOUD).status_code == 405


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["cloud", "green"])
def test_an_address_without_a_slash_at_its_end_is_the_same(client: Client, name: str) -> None:
    """Providers follow no redirect, so every message would be lost."""
    answer = client.post(f"/webhooks/whatsapp/{name}", b"{}", content_type="application/json")
    assert answer.status_code == 401
    asked = {**HANDSHAKE, "hub.verify_token": "test-verify-token"}
    assert client.get(CLOUD.rstrip("/"), asked).content == b"1158201444"
