"""What goes out in staff's replies by each provider beside text: quotes, and templates, which are
sent after WhatsApp's window has closed. Green API has no window."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import ChatPause, Message, OutboundPart, Turn
from tests.dashboard.senders import (
    INSTANCE,
    by_hand,
    conversation,
    panel,
    post,
    sending_by_cloud,
    sending_by_green,
    silent_for_a_day,
)
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.shown import found_in
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db

VALUES = "Emma\r\n\r\n five o'clock \r\n"
READY: dict[str, Any] = {"name": "order_ready", "language": "en_US", "parameters": VALUES}


@pytest.fixture
def graph(world: World) -> Iterator[GraphServer]:
    with sending_by_cloud(world) as server:
        world.receive(message_from(CLIENT, "Is it open?"))
        world.work()
        yield server


@pytest.fixture
def closed(graph: GraphServer) -> GraphServer:
    """The window has closed, and there is a template."""
    graph.templates[("order_ready", "en_US")] = 2
    graph.sent.clear()
    silent_for_a_day()
    return graph


@pytest.fixture
def green(world: World) -> Iterator[GreenServer]:
    with sending_by_green(world) as server:
        about = {"number_id": INSTANCE, "provider_message_id": "3EB0C767D097B7C7"}
        world.receive(message_from(CLIENT, "Is it open?", provider="green", **about))
        world.work()
        yield server


def question() -> Message:
    return Message.objects.get(content="Is it open?")


def bubble(shown: str, message: Message) -> str:
    return found_in(rf'<article id="m-{message.pk}".*?</article>', shown)


def test_a_quote_goes_out_by_the_cloud_api_and_stands_in_the_bubble(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    key = question().pk
    assert post(admin_client, world, "reply", text="Until five", quote=key).status_code == 302
    assert graph.sent[-1]["text"]["body"] == "Until five"
    assert graph.sent[-1]["context"] == {"message_id": question().provider_message_id}
    written = Message.objects.get(content="Until five")
    shown = bubble(conversation(admin_client, world), written)
    assert f'href="?at={key}#m-{key}" dir="auto">Is it open?</a>' in shown
    answer = Message.objects.get(role="assistant", order_num=2)
    post(admin_client, world, "reply", text="I take that back", quote=answer.pk)
    assert graph.sent[-1]["context"] == {"message_id": graph.sent[0]["id"]}, "one of ours, too"
    before = len(graph.sent)
    post(admin_client, world, "reply", text="word " * 1_500, quote=key)
    assert ["context" in part for part in graph.sent[before:]] == [True, False], "once"
    post(admin_client, world, "reply", text="Hello", quote="")
    assert "context" not in graph.sent[-1]


def test_by_green_api_replies_quote_and_have_neither_a_window_nor_templates(
    admin_client: Client, world: World, green: GreenServer
) -> None:
    silent_for_a_day()
    shown = panel(admin_client, world)
    assert 'name="text"' in shown
    assert "WhatsApp takes replies until" not in shown
    key = question().pk
    assert post(admin_client, world, "reply", text="Until five", quote=key).status_code == 302
    assert green.sent[-1]["message"] == "Until five"
    assert green.sent[-1]["quotedMessageId"] == "3EB0C767D097B7C7"
    answer = post(admin_client, world, "template", **READY)
    assert answer.status_code == 409
    assert "only the Cloud API has templates" in answer.content.decode()


def test_in_a_group_a_reply_quotes_only_what_was_chosen(admin_client: Client, world: World) -> None:
    world.receive(message_from(CLIENT, "Where?", group_id="120363000000000001", mentions_us=True))
    world.work()
    chat = Message.objects.get(content="Where?").chat
    address = f"/admin/sessions_app/turn/takeover/{chat.pk}/reply/"
    admin_client.post(address, {"text": "Here", "key": str(uuid.uuid4())})
    world.work()
    assert (world.provider.sent[-1].text, world.provider.sent[-1].reply_to) == ("Here", None)


@pytest.mark.parametrize("which", ["gone", "of another chat", "without an id", "nonsense"])
def test_what_can_not_be_quoted_is_refused_and_the_text_is_kept(
    admin_client: Client, world: World, graph: GraphServer, which: str
) -> None:
    quote, asked = str(question().pk), Message.objects.filter(pk=question().pk)
    if which == "gone":
        asked.update(revoked_at=timezone.now(), content="")
    elif which == "of another chat":
        world.receive(message_from(OTHER_CLIENT, "A secret"))
        quote = str(Message.objects.get(content="A secret").pk)
    elif which == "without an id":
        asked.update(provider_message_id=None)
    else:
        quote = "nonsense"
    answer = post(admin_client, world, "reply", text="My words", quote=quote)
    assert answer.status_code == 409
    shown = answer.content.decode()
    assert "the message that you quote isn&#x27;t there any more" in shown or which != "gone"
    assert "My words</textarea>" in shown
    assert "A secret" not in shown
    assert not Turn.objects.filter(by_hand=True).exists()


def test_without_a_script_the_link_puts_the_quote_into_the_form(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    key = question().pk
    shown = bubble(conversation(admin_client, world), question())
    assert f'href="?at={key}&amp;quote={key}#takeover"' in shown
    shown = conversation(admin_client, world, at=key, quote=key)
    assert f'name="quote" value="{key}"' in shown
    assert re.search(r'class="quoting-text"[^>]*>Is it open\?<', shown)


# Templates


def test_a_template_goes_out(admin_client: Client, world: World, closed: GraphServer) -> None:
    shown = panel(admin_client, world)
    assert "/template/" in shown
    assert "stands for {{1}}" in shown
    key = str(uuid.uuid4())
    for _ in range(2):
        assert post(admin_client, world, "template", **READY, key=key).status_code == 302
    (sent,) = closed.sent
    assert (sent["type"], sent["to"]) == ("template", CLIENT.split("@")[0])
    values = [{"type": "text", "text": "Emma"}, {"type": "text", "text": "five o'clock"}]
    assert sent["template"] == {
        "name": "order_ready",
        "language": {"code": "en_US"},
        "components": [{"type": "body", "parameters": values}],
    }
    message = Message.objects.latest("received_at")
    assert message.content == "order_ready (en_US)\nEmma\nfive o'clock"
    assert (message.kind, message.role) == ("template", "assistant")
    assert (message.provider_message_id, message.delivery_status) == (sent["id"], "sent")
    assert "article</span> Template" in conversation(admin_client, world)
    assert ChatPause.objects.exists()
    # Nothing of its values is left beside the message.
    assert "Emma" not in str(by_hand().context)
    assert OutboundPart.objects.get(turn=by_hand()).content == ""
    event = AuditEvent.objects.get(action="takeover.template")
    assert (event.actor, event.object_id) == ("admin", str(by_hand().turn_id))
    assert event.details == {"name": "order_ready", "language": "en_US"}
    world.receive(message_from(CLIENT, "Hello again"))
    shown = panel(admin_client, world)
    assert ('name="text"' in shown, "/template/" in shown) == (True, False)


@pytest.mark.parametrize(
    ("name", "parameters"), [("unheard_of", ""), ("order_ready", "Only one value")]
)
def test_what_meta_refuses_fails_and_can_be_seen(
    admin_client: Client, world: World, closed: GraphServer, name: str, parameters: str
) -> None:
    post(admin_client, world, "template", name=name, language="en_US", parameters=parameters)
    assert closed.sent == []
    assert by_hand().state == "failed"
    assert "(#13200" in by_hand().error
    assert Message.objects.latest("received_at").delivery_status == "failed"


def test_one_that_failed_is_sent_again_though_the_window_is_closed(
    admin_client: Client, world: World, closed: GraphServer
) -> None:
    approved = closed.templates.pop(("order_ready", "en_US"))
    post(admin_client, world, "template", **READY)
    assert by_hand().state == "failed"
    Turn.objects.filter(by_hand=True).update(asked_at=timezone.now() - timedelta(hours=30))
    closed.templates[("order_ready", "en_US")] = approved
    form = {"action": "send_again", "_selected_action": [by_hand().pk], "post": "yes"}
    admin_client.post("/admin/sessions_app/turn/", form)
    world.work()
    assert [sent["template"]["name"] for sent in closed.sent] == ["order_ready"]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": "Order Ready"}, "A template&#x27;s name has small letters"),
        ({"language": "english"}, "Write the language as Meta does"),
        ({"parameters": "x" * 1_025}, "Write each value on a line of its own"),
        ({"parameters": "a\n" * 21}, "Write each value on a line of its own"),
        ({"parameters": "far      apart"}, "Write each value on a line of its own"),
        ({"key": "none"}, "The form was broken"),
        ({"name": "a\x00b"}, "The form was broken"),
    ],
)
def test_what_could_not_go_out_is_refused_and_kept(
    admin_client: Client, world: World, closed: GraphServer, changed: dict[str, Any], problem: str
) -> None:
    answer = post(admin_client, world, "template", **{**READY, **changed})
    assert answer.status_code == 409
    assert problem in answer.content.decode()
    if "parameters" not in changed:
        assert "five o&#x27;clock" in answer.content.decode()
    assert not Turn.objects.filter(by_hand=True).exists()


def test_a_chat_of_no_provider_has_no_window_of_whatsapp(
    admin_client: Client, world: World, settings: Any
) -> None:
    world.receive(message_from(CLIENT, "Is it open?", provider="console"))
    settings.WHATSAPP_PROVIDER = "console"
    shown = panel(admin_client, world)
    assert "is sent to nobody" in shown
    assert "WhatsApp takes replies until" not in shown
