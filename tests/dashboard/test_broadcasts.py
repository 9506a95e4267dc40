"""Saying something first: whom a template goes to, at which pace, and what became of it."""

from __future__ import annotations

import html
import json
import re
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.utils import timezone

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.loopback.providers import graph_error
from memoryproject.foundation.integrations.whatsapp.cloud.parse import parse_cloud
from sessions_app.broadcasts.send_broadcast import broadcast_step
from sessions_app.inbox.needs import conversations_count, needs_you, to_review_ids
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import (
    Broadcast,
    BroadcastRecipient,
    Chat,
    ChatAccess,
    ChatLabel,
    ChatPause,
    Label,
    OutboundPart,
    Turn,
)
from sessions_app.sweeps import leased_kinds
from tests.architecture.test_names import ROOT
from tests.dashboard.senders import sending_by_cloud
from tests.dashboard.staff import staff_with
from tests.loopback.graph import GraphServer
from tests.loopback.httpd import Fault
from tests.promises.test_promises import read
from tests.shown import found_in
from tests.world import GODFATHER, OTHER_CLIENT, World, message_from, remember

pytestmark = pytest.mark.django_db
PAGE = "/admin/broadcasts/"
STOPPED = ROOT / "tests/payloads/cloud/status_failed_marketing_stopped.json"
SALE: dict[str, Any] = {
    "name": "sale",
    "language": "en",
    "category": "MARKETING",
    "components": [{"type": "BODY", "text": "Hello {{1}}, sale at {{2}}!"}],
}
QUERY = urlencode({"name": "sale", "language": "en"})


@pytest.fixture
def graph(world: World, settings: Any) -> Iterator[GraphServer]:
    with sending_by_cloud(world) as server:
        settings.WHATSAPP_CLOUD_API_URL = f"{server.url}/v24.0"
        settings.WHATSAPP_CLOUD_PHONE_NUMBER_ID = server.phone_number_id
        settings.WHATSAPP_CLOUD_ACCESS_TOKEN = "token"
        settings.WHATSAPP_PROVIDER = "cloud"
        settings.WHATSAPP_BUSINESS_ACCOUNT_ID = server.business_account_id
        server.template_list = [SALE]
        server.templates = {("sale", "en"): 2}
        yield server


def clients(world: World, count: int) -> list[Chat]:
    for number in range(count):
        world.receive(message_from(f"1555010{1000 + number}@c.us", "Hi"))
    world.work()
    return list(Chat.objects.order_by("created_at"))


def post(client: Client, do: str, **form: Any) -> Any:
    fields = {"value-0": "{name|there}", "value-1": "nine", "key": str(uuid.uuid4()), "do": do}
    # As the script adds it that keeps what was typed.
    fields["draft_token"] = str(uuid.uuid4())
    return client.post(f"{PAGE}?{QUERY}", {**fields, **form}, follow=True)


def shown(answer: Any) -> str:
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", html.unescape(answer.content.decode()))


def start(client: Client, to: int, **form: Any) -> Broadcast:
    text = shown(post(client, "preview", **form))
    assert f"Send to {to} p" in text
    post(client, "send", seen=found_in(r'name="seen" value="(\w+)"', text), **form)
    return Broadcast.objects.latest("created_at")


def minute(world: World, broadcast: Broadcast) -> None:
    """What the sweep does in the next minute, and then the program that answers."""
    Broadcast.objects.filter(pk=broadcast.pk).update(next_at=timezone.now())
    kind = next(each for each in leased_kinds() if each.name == "broadcasts")
    kind.sweep(timezone.now())
    world.enqueued.extend(Turn.objects.filter(state="replied").values_list("chat_id", flat=True))
    world.work()
    broadcast.refresh_from_db()


def bodies(graph: GraphServer) -> list[tuple[str, str]]:
    sent = [each.body or {} for each in graph.requests]
    found = [body for body in sent if body.get("type") == "template"]
    return [
        (body["to"], body["template"]["components"][0]["parameters"][0]["text"]) for body in found
    ]


def test_the_preview_says_who_gets_it_and_who_is_left_out_and_why(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    chats = clients(world, 6)
    Chat.objects.filter(pk=chats[0].pk).update(client_name="Emma")
    Chat.objects.filter(pk=chats[1].pk).update(client_name="")
    ChatAccess.objects.update_or_create(chat=chats[2], defaults={"opted_out_at": timezone.now()})
    ChatAccess.objects.update_or_create(chat=chats[3], defaults={"marketing_stopped": True})
    ChatAccess.objects.update_or_create(chat=chats[4], defaults={"standing": "blocked"})
    ChatPause.objects.create(chat=chats[5], since=timezone.now())
    world.receive(message_from(OTHER_CLIENT, "Hi"))
    Chat.objects.filter(whatsapp_chat=OTHER_CLIENT).update(provider="green")

    text = shown(post(admin_client, "preview"))
    assert "It goes to 2 people" in text
    for reason in ("2 · has said stop", "1 · is blocked", "1 · is on hold", "1 · has no number"):
        assert reason in text
    assert "Hello Emma, sale at nine!" in text
    assert "Hello there, sale at nine!" in text
    assert "Send to 2 people" in text
    text = shown(post(admin_client, "preview", **{"value-0": "{name}"}))
    assert "It goes to 1 person" in text
    assert "1 · has no name" in text
    assert bodies(graph) == []
    assert not Broadcast.objects.exists()


def test_it_promises_nothing(admin_client: Client, world: World, graph: GraphServer) -> None:
    clients(world, 2)
    broadcast = start(admin_client, 2, **{"value-1": "9 today, and we'll call you tomorrow"})
    minute(world, broadcast)
    assert len(bodies(graph)) == 2
    assert read(world) == []


def test_a_segment_is_made_of_labels_language_last_contact_and_facts(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    chats = clients(world, 3)
    label = Label.objects.create(name="VIP")
    ChatLabel.objects.create(chat=chats[0], label=label)
    Chat.objects.update(language="he")
    Chat.objects.filter(pk=chats[1].pk).update(language="en")
    chats[2].activity.last_at = timezone.now() - timedelta(days=30)
    chats[2].activity.save()
    remember(world, "Is allergic to nuts", "chat", chats[1].whatsapp_chat)
    month_ago = f"{timezone.now() - timedelta(days=20):%Y-%m-%dT%H:%M}"
    for form, number in (
        ({}, 3),
        ({"labels": [label.pk]}, 1),
        ({"language": "he"}, 2),
        ({"since": month_ago}, 2),
        ({"until": month_ago}, 1),
        ({"fact": "NUTS allergic"}, 1),
        ({"fact": "nuts", "language": "he"}, 0),
    ):
        text = shown(post(admin_client, "preview", **form))
        assert f"It goes to {number} p" in text, form
        assert ("loosen" in text) == (number == 0)
    # Who may see no memories can't ask for them.
    rights = ("view_chat", "view_message", "takeover_chat")
    other = staff_with(*(f"sessions_app.{each}" for each in rights))
    text = shown(post(other, "preview", fact="nuts"))
    assert "It goes to 3 people" in text
    assert 'name="fact"' not in text


def test_it_is_sent_once_to_each_at_its_pace(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.BROADCAST_PER_MINUTE = 2
    chats = clients(world, 5)
    key = str(uuid.uuid4())
    assert "Nothing is sent yet" in shown(post(admin_client, "send", seen="other", key=key))
    assert not Broadcast.objects.exists()
    for _ in range(2):
        broadcast = start(admin_client, 5, key=key)
    assert BroadcastRecipient.objects.count() == 5
    broadcast_step(broadcast.pk)
    broadcast_step(broadcast.pk)
    assert Turn.objects.filter(by_hand=True).count() == 2, "two at once in a minute count as one"
    for expected in (4, 5, 5):
        minute(world, broadcast)
        assert Turn.objects.filter(by_hand=True, state="sent").count() == expected
    assert broadcast.state == "done"
    assert sorted(to for to, _ in bodies(graph)) == sorted(
        each.whatsapp_chat.split("@")[0] for each in chats
    )
    # It stands in the conversation, and pauses nobody.
    assert "Hello Test User, sale at nine!" in world.messages(chats[0].whatsapp_chat)[-1].content
    assert not ChatPause.objects.exists()
    actions = set(AuditEvent.objects.filter(actor="admin").values_list("action", flat=True))
    assert actions >= {"broadcast.started", "takeover.template"}


def test_who_stops_meanwhile_gets_nothing_and_is_counted(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.BROADCAST_PER_MINUTE = 1
    chats = clients(world, 3)
    broadcast = start(admin_client, 3)
    minute(world, broadcast)
    first = BroadcastRecipient.objects.get(turn__isnull=False).chat
    world.receive(message_from(first.whatsapp_chat, "Stop"))
    others = [each for each in chats if each != first]
    world.receive(message_from(others[0].whatsapp_chat, "STOP"))
    # One whose message waits to be sent says it at the last moment.
    minute(world, broadcast)
    Broadcast.objects.update(next_at=timezone.now())
    broadcast_step(broadcast.pk)
    ChatAccess.objects.update_or_create(chat=others[1], defaults={"marketing_stopped": True})
    minute(world, broadcast)
    assert [to for to, _ in bodies(graph)] == [first.whatsapp_chat.split("@")[0]]
    text = shown(admin_client.get(f"{PAGE}{broadcast.pk}/"))
    for figure in ("Sent <b>1</b>", "Left out <b>1</b>", "Failed <b>1</b>", "Replied <b>1</b>"):
        assert figure in text
    assert "has stopped such messages" in text
    assert "Said stop since <b>1</b>" in text
    # The next one leaves all of them out.
    assert "3 · has said stop" in shown(post(admin_client, "preview"))


def test_who_meta_says_has_stopped_gets_no_other_one(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    clients(world, 2)
    broadcast = start(admin_client, 2)
    minute(world, broadcast)
    part = OutboundPart.objects.filter(turn__recipient__broadcast=broadcast).first()
    assert part is not None
    chat = part.turn.chat
    said = json.loads(STOPPED.read_text(encoding="utf-8"))
    status = said["entry"][0]["changes"][0]["value"]["statuses"][0]
    status["id"], status["timestamp"] = part.provider_message_id, str(int(time.time()) + 1)
    status["recipient_id"] = chat.whatsapp_chat.split("@")[0]
    world.receive(*parse_cloud(said))
    assert [each.chat for each in ChatAccess.objects.filter(marketing_stopped=True)] == [chat]
    text = shown(admin_client.get(f"{PAGE}{broadcast.pk}/"))
    assert "Failed <b>1</b>" in text
    assert "Said stop since <b>1</b>" in text
    text = shown(post(admin_client, "preview"))
    assert "It goes to 1 person" in text
    assert "1 · has said stop" in text


def refuse(graph: GraphServer, code: int, times: int) -> None:
    answer = graph_error(code, f"(#{code}) refused")
    graph.fail_next(*[Fault(answer=answer)] * times)


def test_it_waits_where_meta_asks_to_slow_down(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.BROADCAST_PER_MINUTE = 1
    clients(world, 2)
    broadcast = start(admin_client, 2)
    refuse(graph, 130429, 4)
    minute(world, broadcast)
    minute(world, broadcast)
    assert BroadcastRecipient.objects.filter(made_at=None).count() == 1, "no further one is made"
    assert broadcast.state == "running"
    Turn.objects.update(not_before=None)
    for _ in range(2):
        minute(world, broadcast)
    assert Turn.objects.filter(by_hand=True, state="sent").count() == 2


def test_one_that_begins_later_still_does_after_a_pause(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    clients(world, 1)
    at = timezone.localtime(timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    broadcast = start(admin_client, 1, at=at)
    for to in ("paused", "running"):
        admin_client.post(f"{PAGE}{broadcast.pk}/", {"to": to})
    again = Broadcast.objects.get()
    assert (again.state, again.next_at) == ("running", broadcast.next_at)


def test_odd_input_is_refused_or_made_plain(
    admin_client: Client, world: World, graph: GraphServer
) -> None:
    clients(world, 1)
    assert start(admin_client, 1, **{"value-1": "a\0b"}).parameters[1] == "ab"
    for odd in ({"fact": "word " * 3_000}, {"at": "soon"}):
        assert "Send to" not in shown(post(admin_client, "preview", **odd)), odd
    assert ">Hebrew</option>" in shown(post(admin_client, "preview"))


def test_too_many_failures_pause_it_and_what_was_cancelled_is_not_sent(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.BROADCAST_PER_MINUTE = 5
    clients(world, 7)
    broadcast = start(admin_client, 7)
    refuse(graph, 131026, 5)
    for _ in range(2):
        minute(world, broadcast)
    assert broadcast.state == "paused"
    page = f"{PAGE}{broadcast.pk}/"
    text = shown(admin_client.get(page))
    assert "5 of the last 5 messages failed" in text
    assert "Failed <b>5</b>" in text
    assert text.count("131026") >= 5
    admin_client.post(page, {"to": "running"})
    Broadcast.objects.update(next_at=timezone.now())
    broadcast_step(broadcast.pk)
    admin_client.post(page, {"to": "cancelled"})
    world.enqueued.extend(Turn.objects.filter(state="replied").values_list("chat_id", flat=True))
    world.work()
    text = shown(admin_client.get(page))
    assert "Cancelled" in text
    assert text.count("staff cancelled the broadcast") == 2
    assert len(bodies(graph)) == 5
    text = shown(admin_client.post(page, {"to": "running"}, follow=True))
    assert "It has ended" in text


def test_it_waits_for_a_template_that_is_gone_or_cant_be_listed(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    clients(world, 1)
    broadcast = start(admin_client, 1)
    cache.clear()
    graph.fail_next_get(Fault(answer=graph_error(2, "(#2) Service unavailable", status=500)))
    minute(world, broadcast)
    assert broadcast.state == "running"
    graph.template_list = []
    minute(world, broadcast)
    assert broadcast.state == "running"
    assert "Meta's list" in shown(admin_client.get(f"{PAGE}{broadcast.pk}/"))
    settings.WHATSAPP_BUSINESS_ACCOUNT_ID = ""
    assert "Set WHATSAPP_BUSINESS_ACCOUNT_ID" in shown(admin_client.get(PAGE))


def test_a_test_goes_to_one_number_alone(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    clients(world, 2)
    for typed in ("", "+1 (555) 010-0456", "٠٠١٥٥٥ ٠١٠ ٠٤٥٦"):
        answer = post(admin_client, "test", number=typed)
        assert "The test is on its way" in shown(answer)
    world.enqueued.extend(Turn.objects.filter(state="replied").values_list("chat_id", flat=True))
    world.work()
    numbers = {each.split("@")[0] for each in (GODFATHER, OTHER_CLIENT)}
    assert {to for to, _ in bodies(graph)} == numbers
    assert not Broadcast.objects.exists()
    assert "That is no number" in shown(post(admin_client, "test", number="Emma"))
    for form in ({"value-1": ""}, {"value-1": "{price}"}):
        assert 'role="alert"' in shown(post(admin_client, "send", **form))


def test_merged_chats_get_it_once(
    admin_client: Client, world: World, graph: GraphServer, settings: Any
) -> None:
    settings.BROADCAST_PER_MINUTE = 1
    one, other = clients(world, 2)
    broadcast = start(admin_client, 2)
    minute(world, broadcast)
    with transaction.atomic():
        chat_merge(one, other, by_staff=True)
    minute(world, broadcast)
    assert len(bodies(graph)) == 1
    assert BroadcastRecipient.objects.get().chat_id == one.pk
    assert broadcast.state == "done"


def test_it_answers_nobody_who_waits_and_its_failures_are_not_the_queue_of_staff(
    admin_client: Client, world: World, graph: GraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if more had been sent than the queue looks at: a thousand take too long.
    monkeypatch.setattr("sessions_app.inbox.needs.NEWEST", 2)
    chats = clients(world, 2)
    Turn.objects.filter(chat=chats[0]).update(state="failed")
    assert conversations_count() == 1
    broadcast = start(admin_client, 2)
    refuse(graph, 131026, 2)
    minute(world, broadcast)
    assert Turn.objects.filter(by_hand=True, state="failed").count() == 2
    assert conversations_count() == 1, "who waited before waits still, and the other one doesn't"
    assert to_review_ids() == [Turn.objects.get(chat=chats[0], by_hand=False).pk]
    long_ago = timezone.now() - timedelta(minutes=30)
    Turn.objects.filter(by_hand=True).update(state="replied", created_at=long_ago)
    assert set(Chat.objects.filter(needs_you())) == {chats[0]}, "Meta's slowness isn't the queue's"
    Turn.objects.filter(by_hand=True).update(state="failed")
    world.forget("chat", chats[0].pk)
    assert BroadcastRecipient.objects.get().chat_id == chats[1].pk
    assert "Failed <b>1</b>" in shown(admin_client.get(f"{PAGE}{broadcast.pk}/"))
