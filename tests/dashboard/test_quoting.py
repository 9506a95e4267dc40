"""Staff quote a message: it goes out as the provider's quote, and stands in the bubble."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sessions_app.models import Message, Turn
from tests.dashboard.senders import INSTANCE, sending_by_cloud, sending_by_green
from tests.dashboard.staff import staff_with
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.world import CLIENT, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def memory_on(settings: Any) -> None:
    settings.ENABLE_MEMORY_SYSTEM = True


@pytest.fixture
def graph(world: World) -> Iterator[GraphServer]:
    with sending_by_cloud(world) as server:
        yield server


@pytest.fixture
def green(world: World) -> Iterator[GreenServer]:
    with sending_by_green(world) as server:
        yield server


def asked(world: World, text: str = "Is it open?", **changes: Any) -> Message:
    """A message of the person, answered."""
    world.receive(message_from(CLIENT, text, **changes))
    world.work()
    return Message.objects.get(content=text)


def reply(client: Client, world: World, text: str, quote: object) -> Any:
    address = f"/admin/sessions_app/turn/takeover/{world.chat(CLIENT).pk}/reply/"
    form = {"text": text, "key": str(uuid.uuid4()), "quote": str(quote)}
    answer = client.post(address, form)
    world.work()
    return answer


def conversation(client: Client, world: World, query: str = "") -> str:
    address = f"/admin/sessions_app/chat/{world.chat(CLIENT).pk}/conversation/{query}"
    return client.get(address).content.decode()


def bubble(page: str, message: Message) -> str:
    found = re.search(rf'<article id="m-{message.pk}".*?</article>', page, re.S)
    assert found
    return found[0]


def test_by_the_cloud_api(admin_client: Client, world: World, graph: GraphServer) -> None:
    question = asked(world)
    assert reply(admin_client, world, "Until five", question.pk).status_code == 302
    assert graph.sent[-1]["text"]["body"] == "Until five"
    assert graph.sent[-1]["context"] == {"message_id": question.provider_message_id}
    written = Message.objects.get(content="Until five")
    shown = bubble(conversation(admin_client, world), written)
    assert f'href="?at={question.pk}#m-{question.pk}" dir="auto">Is it open?</a>' in shown


def test_an_answer_of_ours_too(admin_client: Client, world: World, graph: GraphServer) -> None:
    asked(world)
    answer = Message.objects.get(role="assistant")
    reply(admin_client, world, "I take that back", answer.pk)
    assert graph.sent[-1]["context"] == {"message_id": graph.sent[0]["id"]}


def test_by_green_api(admin_client: Client, world: World, green: GreenServer) -> None:
    question = asked(
        world, provider="green", number_id=INSTANCE, provider_message_id="3EB0C767D097B7C7"
    )
    assert reply(admin_client, world, "Until five", question.pk).status_code == 302
    assert green.sent[-1]["message"] == "Until five"
    assert green.sent[-1]["quotedMessageId"] == "3EB0C767D097B7C7"


def test_a_long_reply_quotes_once(admin_client: Client, world: World, graph: GraphServer) -> None:
    question = asked(world)
    reply(admin_client, world, "word " * 1_500, question.pk)
    assert ["context" in part for part in graph.sent[1:]] == [True, False]


def test_nothing_is_quoted_unasked(admin_client: Client, world: World, graph: GraphServer) -> None:
    asked(world)
    reply(admin_client, world, "Hello", "")
    assert "context" not in graph.sent[-1]


def test_in_a_group_a_reply_quotes_only_what_was_chosen(world: World, admin_client: Client) -> None:
    world.receive(message_from(CLIENT, "Where?", group_id="120363000000000001", mentions_us=True))
    world.work()
    chat = Message.objects.get(content="Where?").chat
    address = f"/admin/sessions_app/turn/takeover/{chat.pk}/reply/"
    admin_client.post(address, {"text": "Here", "key": str(uuid.uuid4())})
    world.work()
    assert (world.provider.sent[-1].text, world.provider.sent[-1].reply_to) == ("Here", None)


def test_what_is_not_there_any_more_is_refused_and_the_text_is_kept(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    question = asked(world)
    Message.objects.filter(pk=question.pk).update(revoked_at=timezone.now(), content="")
    answer = reply(admin_client, world, "My words", question.pk)
    assert answer.status_code == 409
    page = answer.content.decode()
    assert "the message that you quote isn&#x27;t there any more" in page
    assert "My words</textarea>" in page
    assert not Turn.objects.filter(by_hand=True).exists()


@pytest.mark.parametrize("which", ["of another chat", "without an id", "nonsense"])
def test_only_a_message_of_the_chat_that_the_provider_knows(
    admin_client: Client, world: World, graph: GraphServer, which: str
) -> None:
    question = asked(world)
    quote: object = question.pk
    if which == "of another chat":
        world.receive(message_from(OTHER_CLIENT, "A secret"))
        quote = Message.objects.get(content="A secret").pk
    elif which == "without an id":
        Message.objects.filter(pk=question.pk).update(provider_message_id=None)
    else:
        quote = "nonsense"
    answer = reply(admin_client, world, "Hello", quote)
    assert answer.status_code == 409
    assert "A secret" not in answer.content.decode()


def test_without_a_script_the_link_puts_the_quote_into_the_form(
    admin_client: Client, world: World
) -> None:
    question = asked(world)
    shown = bubble(conversation(admin_client, world), question)
    link = f"?at={question.pk}&amp;quote={question.pk}#takeover"
    assert f'href="{link}"' in shown
    page = conversation(admin_client, world, f"?at={question.pk}&quote={question.pk}")
    assert f'name="quote" value="{question.pk}"' in page
    assert re.search(r'class="quoting-text"[^>]*>Is it open\?<', page)


def test_who_may_only_read_gets_no_arrow(world: World) -> None:
    asked(world)
    reader = staff_with("sessions_app.view_chat", "sessions_app.view_message")
    assert "quote-act" not in conversation(reader, world)
