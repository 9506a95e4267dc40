"""What a person sees beside a message reaches the model, summaries and staff: the line that it
answers, ads and products, forwarding, edits, reactions, contact cards, orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from memoryproject.foundation.integrations.whatsapp.events import MessageRevoked, Party
from memoryproject.foundation.integrations.whatsapp.green.parse import parse_green
from sessions_app.conversations.message_text import cited, text_with_reactions
from sessions_app.models import Message, OutboundPart
from tests import events
from tests.world import CLIENT, NUMBER_ID, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
PHONE = CLIENT.partition("@")[0]


def cloud(message: dict[str, Any]) -> Any:
    """An event of the Cloud API, of a message by the client."""
    contact = {"profile": {"name": "Ana"}, "wa_id": PHONE}
    about = {"phone_number_id": NUMBER_ID, "display_phone_number": "15550109999"}
    text = {"type": "text", "text": {"body": "hello"}}
    whole = {"from": PHONE, "timestamp": "1795890000", **text, **message}
    value = {"metadata": about, "contacts": [contact], "messages": [whole]}
    body = {"entry": [{"id": "1", "changes": [{"field": "messages", "value": value}]}]}
    (event,) = parse_cloud(body)
    return event


def green(data: dict[str, Any]) -> Any:
    sender = {"chatId": CLIENT, "sender": CLIENT, "senderName": "Ana"}
    (event,) = parse_green(
        {
            "typeWebhook": "incomingMessageReceived",
            "instanceData": {"idInstance": 1101000001, "wid": "15550109999@c.us"},
            "timestamp": 1795890000,
            "idMessage": "3EB0AAAA",
            "senderData": sender,
            "messageData": data,
        }
    )
    return event


def heard(world: World) -> str:
    """The last line of the last prompt."""
    return str(world.prompt()[-1].content)


def tell(world: World, event: Any) -> str:
    world.receive(replace(event, timestamp=timezone.now()))
    world.work()
    return heard(world)


def quoting(message_id: str | None, text: str = "How much for two of this?") -> Any:
    context = {"from": "15550109999", "id": message_id}
    return cloud({"id": "wamid.q", "context": context, "text": {"body": text}})


def test_the_line_that_is_answered(world: World) -> None:
    cake = message_from(CLIENT, "The [chocolate]\ncake for 25")
    world.receive(cake)
    world.work()
    shown = tell(world, quoting(cake.provider_message_id))
    assert shown == (
        "[in reply to their own message “The (chocolate) cake for 25”]\nHow much for two of this?"
    )
    answer = Message.objects.filter(role="assistant").earliest("order_num")
    world.say(CLIENT, "And today?", reply_to_id=answer.provider_message_id)
    assert heard(world).startswith(f"[in reply to the assistant’s message {cited(answer.content)}")


def test_any_part_of_a_long_answer_may_be_quoted(world: World) -> None:
    world.say(CLIENT, "Tell me all. " * 900)
    second = OutboundPart.objects.get(number=2)
    world.say(CLIENT, "What is that?", reply_to_id=second.provider_message_id)
    assert heard(world).startswith("[in reply to the assistant’s message “answer to: Tell me all.")


def test_what_is_not_known_of_a_quote(world: World) -> None:
    """Its message is of another chat, was never stored, or is gone: nothing of it is shown."""
    secret = message_from(OTHER_CLIENT, "my secret")
    world.receive(secret)
    world.work()
    world.say(CLIENT, "Hm?", reply_to_id=secret.provider_message_id)
    assert heard(world) == "[in reply to an earlier message]\nHm?"
    world.say(CLIENT, "And?", reply_to_id="wamid.never-stored")
    assert heard(world) == "[in reply to an earlier message]\nAnd?"


def test_a_quote_goes_with_its_message(world: World) -> None:
    cake = message_from(CLIENT, "The walnut cake for Tamar")
    world.receive(cake)
    world.work()
    world.say(CLIENT, "Cancel this", reply_to_id=cake.provider_message_id)
    assert "walnut" in str(Message.objects.values_list("metadata"))
    revoked = events.revocation(cake.provider_message_id)
    assert isinstance(revoked, MessageRevoked)
    world.receive(revoked)
    world.work()
    world.say(CLIENT, "Is it done?")
    shown = [line.content for line in world.prompt()[1:] if line.role == "user"]
    assert shown == ["[in reply to an earlier message]\nCancel this", "Is it done?"]
    assert "walnut" not in str(Message.objects.values_list("metadata"))


def test_the_quoted_line_is_looked_up_too(world: World) -> None:
    """Without it, "this" finds nothing."""
    world.remember(CLIENT, "The lemon tart costs 31 shekels")
    tart = message_from(CLIENT, "I saw the lemon tart")
    world.receive(tart)
    world.work()
    world.say(CLIENT, "How much for two of this?", reply_to_id=tart.provider_message_id)
    assert "31 shekels" in world.prompt()[0].content


AD = {"headline": "Cakes for Friday", "body": "20% off", "source_url": "https://fb.me/x"}


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            {"referral": {**AD, "source_type": "ad", "ctwa_clid": "abc"}},
            "[came from the ad “Cakes for Friday – 20% off – https://fb.me/x”]",
        ),
        (
            {"context": {"referred_product": {"catalog_id": "c", "product_retailer_id": "SKU-7"}}},
            "[about the product “SKU-7”]",
        ),
        ({"context": {"forwarded": True}}, "[forwarded: somebody else wrote it]"),
        (
            {"context": {"forwarded": True, "frequently_forwarded": True}},
            "[forwarded many times: others wrote it]",
        ),
    ],
)
def test_where_a_message_comes_from(world: World, message: dict[str, Any], line: str) -> None:
    assert tell(world, cloud({"id": "wamid.a", **message})) == f"{line}\nhello"
    stored = Message.objects.get(role="user")
    assert text_with_reactions(stored).startswith(line)


def test_a_quote_of_green_api(world: World) -> None:
    data: dict[str, Any] = {
        "typeMessage": "quotedMessage",
        "extendedTextMessageData": {"text": "This one", "stanzaId": "3EB0OLD"},
        "quotedMessage": {
            "stanzaId": "3EB0OLD",
            "participant": "15550109999@c.us",
            "typeMessage": "textMessage",
            "textMessage": "Red or white?",
        },
    }
    line = "[in reply to the assistant’s message “{}”]\nThis one"
    assert tell(world, green(data)) == line.format("Red or white?")
    data["quotedMessage"] |= {"typeMessage": "imageMessage", "textMessage": ""}
    picture = replace(green(data), provider_message_id="3EB0BBBB", delivery_key="picture")
    assert tell(world, picture) == line.format("(image)")


def test_in_a_group_a_quote_names_who_wrote_it(world: World) -> None:
    group = {"group_id": "120363000000000001@g.us", "mentions_us": True}
    rye = message_from(CLIENT, "Rye for ten?", party=Party(phone=PHONE, name="Ana [x]"), **group)
    world.receive(rye)
    world.say(OTHER_CLIENT, "Twenty!", reply_to_id=rye.provider_message_id, **group)
    assert "[in reply to Ana (x)’s message “Rye for ten?”]\nTwenty!" in heard(world)


CARD = {
    "name": {"formatted_name": "Lea Levi", "first_name": "Lea"},
    "org": {"company": "Levi Flour", "title": "Sales"},
    "phones": [{"phone": "+1 555-010-0777", "type": "WORK", "wa_id": "15550100777"}],
    "emails": [{"email": "lea@flour.example", "type": "WORK"}],
}
VCARD = (
    "BEGIN:VCARD\nVERSION:3.0\nN:Levi;Lea;;;\nFN:Lea Levi\nORG:Levi Flour;Sales dept\n"
    "TITLE:Sales\nitem1.TEL;waid=15550100777:tel:+1 555-010-0777\n"
    "EMAIL;type=WORK:lea@flour.example\nEND:VCARD"
)
SHOWN = "[contacts] Lea Levi (Sales at Levi Flour), +1 555-010-0777, lea@flour.example"


def test_a_contact_card(world: World) -> None:
    card = cloud({"id": "wamid.c", "type": "contacts", "contacts": [CARD]})
    assert tell(world, card) == SHOWN
    contact = {"displayName": "Lea Levi", "vcard": VCARD}
    data = {"typeMessage": "contactMessage", "contactMessageData": contact}
    assert tell(world, green(data)) == SHOWN


def test_a_reaction_is_an_answer(world: World) -> None:
    world.say(CLIENT, "Book me in")
    answer = Message.objects.get(role="assistant")
    world.receive(events.reaction(answer.provider_message_id or "", "👍"))
    world.say(CLIENT, "Thanks")
    lines = [(line.role, line.content) for line in world.prompt()[1:]]
    assert lines[-2:] == [
        ("assistant", "answer to: Book me in"),
        ("user", "[reacted with 👍 to the assistant’s message “answer to: Book me in”]\nThanks"),
    ]
    world.receive(events.reaction(answer.provider_message_id or "", ""))
    world.say(CLIENT, "Bye")
    assert not any(line.content.startswith("[reacted") for line in world.prompt()[1:])


def test_staff_see_cards(world: World, client: Client, admin_user: User) -> None:
    referral = {**AD, "source_url": "javascript:alert(1)"}
    tell(world, cloud({"id": "wamid.1", "referral": referral, "context": {"forwarded": True}}))
    tell(world, cloud({"id": "wamid.2", "type": "contacts", "contacts": [CARD]}))
    items = [{"product_retailer_id": "SKU-7", "quantity": 2, "item_price": 5, "currency": "ILS"}]
    order = {"catalog_id": "c", "text": "for Friday", "product_items": items}
    tell(world, cloud({"id": "wamid.3", "type": "order", "order": order}))
    client.force_login(admin_user)
    chat = Message.objects.first().chat_id
    page = client.get(f"/admin/sessions_app/chat/{chat}/conversation/").content.decode()
    for words in ("Cakes for Friday", "Forwarded", "Sales · Levi Flour", "lea@flour.example"):
        assert words in page
    assert "2 × SKU-7 (5 ILS)" in page
    assert "for Friday" in page
    assert 'href="javascript:' not in page
