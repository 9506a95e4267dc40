"""Several numbers under one app, and webhooks for a number that isn't ours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.foundation.integrations.configured import configured_providers
from sessions_app.inbound.facade import foreign_numbers
from sessions_app.models import Chat, InboundDelivery, Message
from tests.loopback.graph import GraphServer
from tests.webhooks.posting import post_cloud, post_green
from tests.world import CLIENT, OTHER_CLIENT, World

pytestmark = pytest.mark.django_db

FIRST, SECOND, THIRD = "100000000000001", "100000000000002", "100000000000003"
TOKENS = {SECOND: "token-of-the-second", THIRD: "common-token"}


def said(number: str, text: str, by: str = "15550100123") -> dict[str, Any]:
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100001", "phone_number_id": number},
        "messages": [
            {
                "from": by,
                "id": f"wamid.{number}.{text}",
                "timestamp": "4000000000",
                "type": "text",
                "text": {"body": text},
            }
        ],
    }
    return {"entry": [{"id": "1", "changes": [{"field": "messages", "value": value}]}]}


@pytest.fixture
def graph(settings: Any, world: World) -> Iterator[GraphServer]:
    with GraphServer(access_token="common-token") as server:
        server.others = dict(TOKENS)
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = f"{FIRST}, {SECOND},{THIRD}"
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = f"common-token, {SECOND}:{TOKENS[SECOND]}"
        world.use(providers=configured_providers())
        yield server


@pytest.fixture
def page() -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("admin", password="a-password"))
    return browser


def test_each_answer_goes_out_by_the_number_of_its_message(
    client: Client, world: World, graph: GraphServer, page: Client
) -> None:
    for number in (FIRST, SECOND, THIRD):
        assert post_cloud(client, said(number, f"to {number}")).status_code == 200
        world.work()
    assert [number for number, _ in graph.sent_by] == [FIRST, SECOND, THIRD]
    assert len(graph.sent) == 3, "each with its own token"
    chat = Chat.objects.get()
    shown = page.get(f"/admin/sessions_app/chat/{chat.pk}/conversation/").content.decode()
    assert all(number in shown for number in (FIRST, SECOND, THIRD))


def test_the_inbox_of_one_number(client: Client, graph: GraphServer, page: Client) -> None:
    post_cloud(client, said(FIRST, "one"))
    post_cloud(client, said(SECOND, "two", by="15550100456"))
    inbox = page.get("/admin/sessions_app/chat/", {"number": SECOND})
    rows = {row.chat.whatsapp_chat for row in inbox.context["rows"]}
    assert rows == {OTHER_CLIENT}
    everybody = page.get("/admin/sessions_app/chat/", {"number": "unknown"})
    assert {row.chat.whatsapp_chat for row in everybody.context["rows"]} == {CLIENT, OTHER_CLIENT}


def test_a_token_that_one_number_lost_stops_that_number_alone(
    client: Client, world: World, graph: GraphServer
) -> None:
    graph.others[SECOND] = "renewed"
    for place in range(3):
        post_cloud(client, said(SECOND, f"refused {place}", by=f"1555010020{place}"))
    post_cloud(client, said(FIRST, "accepted"))
    world.work()
    assert [message["text"]["body"] for message in graph.sent] == ["answer to: accepted"]


def green_said(instance: int) -> dict[str, Any]:
    return {
        "typeWebhook": "incomingMessageReceived",
        "instanceData": {"idInstance": instance, "wid": "15550100001@c.us"},
        "timestamp": 4000000000,
        "idMessage": "ONE",
        "senderData": {"chatId": CLIENT, "sender": CLIENT},
        "messageData": {
            "typeMessage": "textMessage",
            "textMessageData": {"textMessage": "a private matter"},
        },
    }


@pytest.mark.parametrize(
    ("post", "body", "number", "setting"),
    [
        (post_cloud, said("999", "a private matter"), "999", "WHATSAPP_CLOUD_PHONE_NUMBER_ID"),
        (post_green, green_said(77), "77", "GREEN_API_ID_INSTANCE"),
    ],
)
def test_a_number_that_is_not_ours_is_shown_once_a_day_without_its_contents(
    client: Client, page: Client, post: Any, body: dict[str, Any], number: str, setting: str
) -> None:
    for _ in range(3):
        assert post(client, body).status_code == 200
    assert not Message.objects.exists()
    notice = InboundDelivery.objects.get()
    assert (notice.event, notice.raw) == ("Notice", {})
    assert number in notice.outcome
    assert setting in notice.outcome
    assert number in page.get("/admin/").content.decode()
    later = notice.received_at + timedelta(seconds=1)
    assert foreign_numbers(since=later) == []
