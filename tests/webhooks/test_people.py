"""People as both providers show them: forms of a number, names, and our own hidden id."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sessions_app.models import Chat, Message, Turn
from tests.webhooks.posting import post_cloud, post_green

pytestmark = pytest.mark.django_db

LONG, SHORT = "5511987654321", "551187654321"
OUR_LID = "132754033377342"
GROUP = "120363000000000001@g.us"


def cloud(body: dict[str, Any], phone: str, wa_id: str, key: str) -> dict[str, Any]:
    value = body["entry"][0]["changes"][0]["value"]
    value["contacts"][0]["wa_id"] = wa_id
    value["messages"][0] |= {"from": phone, "id": key}
    return body


def green(body: dict[str, Any], text: str, sender: dict[str, Any], **more: Any) -> dict[str, Any]:
    said = {"typeMessage": "textMessage", "textMessageData": {"textMessage": text}}
    return {**body, "idMessage": text, "senderData": sender, "messageData": said, **more}


def in_group(sender: str) -> dict[str, Any]:
    return {"chatId": GROUP, "chatName": "Regulars", "sender": sender, "senderName": "Ana"}


@pytest.mark.parametrize(("phone", "wa_id"), [(LONG, SHORT), (SHORT, LONG)])
def test_both_providers_reach_one_chat(
    client: Client, cloud_text: Any, green_text: Any, phone: str, wa_id: str
) -> None:
    post_cloud(client, cloud(cloud_text, phone, wa_id, "wamid.1"))
    chat = Chat.objects.get()
    assert (chat.client_name, chat.whatsapp_chat) == ("Dana Sample", f"{phone}@c.us")
    address = f"{wa_id}@c.us"
    post_green(client, green(green_text, "hello", {"chatId": address, "sender": address}))
    post_cloud(client, cloud(cloud_text, wa_id, phone, "wamid.2"))
    assert Chat.objects.get().whatsapp_chat == address


@pytest.mark.parametrize(
    "ours",
    [
        {"typeWebhook": "outgoingMessageReceived"},
        {"typeWebhook": "outgoingAPIMessageReceived"},
        {"typeWebhook": "outgoingMessageReceived", "chat": f"{SHORT}@c.us"},
    ],
)
def test_our_hidden_id_is_learned_from_what_we_send(
    client: Client, green_text: Any, ours: dict[str, str]
) -> None:
    mention, other = f"@{OUR_LID} are you open?", f"@{OUR_LID}0 are you open?"
    post_green(client, green(green_text, f"1 {mention}", in_group(f"{SHORT}@c.us")))
    assert not Turn.objects.exists()
    sent = {**in_group(f"{OUR_LID}@lid"), "chatId": ours.get("chat", GROUP)}
    post_green(client, green(green_text, "ours", sent, typeWebhook=ours["typeWebhook"]))
    for number, text in ((2, other), (3, mention)):
        post_green(client, green(green_text, f"{number} {text}", in_group(f"{SHORT}@c.us")))
    quoting = green(green_text, "4 and then?", in_group(f"{SHORT}@c.us"))
    quoting["messageData"]["quotedMessage"] = {"stanzaId": "X", "participant": f"{OUR_LID}@lid"}
    post_green(client, quoting)
    answered = [turn.message.content for turn in Turn.objects.order_by("id") if turn.message]
    assert answered == [f"3 {mention}", "4 and then?"]


@pytest.mark.parametrize("mentioned", [LONG, SHORT])
def test_a_mention_of_our_number_may_have_either_form(
    client: Client, green_text: Any, mentioned: str
) -> None:
    green_text["instanceData"]["wid"] = f"{SHORT}@c.us"
    post_green(client, green(green_text, f"@{mentioned} hi", in_group("15550100123@c.us")))
    assert Turn.objects.get().message == Message.objects.get()
