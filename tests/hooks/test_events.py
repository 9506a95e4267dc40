"""Each kind of event, raised by what people, staff and integrations do."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.review.pending import memory_approve, memory_reject
from memories_app.store.change import memory_pin
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import SYSTEM
from memoryproject.foundation.integrations.whatsapp.base import SendError
from memoryproject.foundation.integrations.whatsapp.events import Party
from memoryproject.foundation.outgoing_webhooks.models import (
    EVENT_TYPES,
    WebhookDelivery,
    WebhookEndpoint,
)
from sessions_app.cards.make_cards import cards_make
from sessions_app.history.clear_session import sessions_expire
from sessions_app.models import Chat, ChatSession, ForgetReceipt, Turn
from tests.api.calling import Api
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.doubles.recording_provider import RecordingProvider
from tests.forms import opened
from tests.hooks.receiver import Receiver, endpoint_at, send_all
from tests.remembering import remember
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT, World, message_from

pytestmark = pytest.mark.django_db
PARROTS = "The client keeps three parrots"


# What each message and its answer are told as; test_api.py has them.
OF_EACH_TURN = ("message.received", "turn.answered")


def told(*, but: tuple[str, ...] = ()) -> list[tuple[str, dict[str, Any]]]:
    """Types and data of what is to be sent, in order, without those of each turn."""
    rows = WebhookDelivery.objects.exclude(event_type__in=OF_EACH_TURN).order_by("id")
    return [(row.event_type, row.data) for row in rows if row.event_type not in but]


def types() -> list[str]:
    return [event_type for event_type, _ in told()]


def test_a_memory_s_life_over_rest_is_told_with_ids_and_without_a_word_of_it(
    api: Api, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    body = {"content": PARROTS, "visibility": "chat", "whatsapp_chat": CLIENT, "category": "pets"}
    memory_id = api.post("memories/", body).json()["memory_id"]
    change = {"content": "The client keeps four parrots", "pinned": True, "tags": ["birds"]}
    assert api.call("PATCH", f"memories/{memory_id}/", change).status_code == 200
    assert api.delete(f"memories/{memory_id}/").status_code == 200
    assert send_all() == 3
    created, changed, forgotten = receiver.events(endpoint.secret)
    assert created == {
        "type": "memory.created",
        "timestamp": created["timestamp"],
        "data": {
            "memory_id": memory_id,
            "status": "active",
            "visibility": "chat",
            "whatsapp_chat": CLIENT,
        },
    }
    assert created["timestamp"].endswith("Z")
    assert changed["type"] == "memory.changed"
    assert changed["data"]["fields"] == ["content", "pinned", "tags"]
    assert (forgotten["type"], forgotten["data"]["memory_id"]) == ("memory.forgotten", memory_id)
    for request in receiver.requests:
        for word in ("parrots", "pets", "birds", "keeps"):
            assert word not in request.raw.decode()


def test_what_a_newer_fact_supersedes_has_changed(endpoint: WebhookEndpoint, world: World) -> None:
    world.remember(GODFATHER, "The price of cement is 35")
    world.remember(GODFATHER, "The price of cement is 40")
    older, newer = Memory.objects.order_by("created_at")
    assert [(kind, data["memory_id"], data["status"]) for kind, data in told()] == [
        ("memory.created", str(older.pk), "active"),
        ("memory.created", str(newer.pk), "active"),
        ("memory.changed", str(older.pk), "superseded"),
    ]
    world.forget("memory", newer.pk)
    gone = [data["memory_id"] for kind, data in told() if kind == "memory.forgotten"]
    assert sorted(gone) == sorted([str(older.pk), str(newer.pk)])


def test_an_import_and_an_erasure_by_command(endpoint: WebhookEndpoint, tmp_path: Path) -> None:
    memory_id = str(uuid4())
    line = {"memory_id": memory_id, "content": PARROTS, "visibility": "public"}
    (tmp_path / "in.ndjson").write_text(json.dumps(line) + "\n")
    call_command("memories_import", str(tmp_path / "in.ndjson"), stdout=StringIO())
    call_command("forget", "memory", memory_id, "--yes", stdout=StringIO())
    assert types() == ["memory.created", "memory.forgotten"]
    assert all(data["memory_id"] == memory_id for _, data in told())


def test_what_waits_for_staff_is_proposed_then_changed_or_gone(endpoint: WebhookEndpoint) -> None:
    wanted = [
        NewMemory(content=f"Likes tea number {n}", visibility="owner", proposed=True)
        for n in range(2)
    ]
    taken, refused = memories_remember(memories=wanted, embedder=HashingEmbedder(), actor=SYSTEM)
    memory_approve(memory_id=taken.memory.pk, actor=SYSTEM)
    memory_reject(memory_id=refused.memory.pk, actor=SYSTEM)
    assert [(kind, data["status"]) for kind, data in told()] == [
        ("memory.created", "proposed"),
        ("memory.created", "proposed"),
        ("memory.changed", "active"),
        ("memory.forgotten", "proposed"),
    ]
    assert told()[-1][1]["receipt_id"] is None, "it was refused, not erased"


def test_staff_who_change_who_may_see_it_in_the_admin_are_told_of(
    endpoint: WebhookEndpoint, admin_client: Client, world: World
) -> None:
    world.remember(GODFATHER, PARROTS)
    memory = Memory.objects.get()
    address = f"/admin/memories_app/memory/{memory.pk}/change/"
    admin_client.post(address, {**opened(admin_client, address), "visibility": "public"})
    memory.refresh_from_db()
    assert memory.visibility == "public"
    kind, changed = told()[-1]
    assert (kind, changed["fields"], changed["visibility"]) == (
        "memory.changed",
        ["visibility"],
        "public",
    )


def test_passages_are_memories(
    endpoint: WebhookEndpoint, admin_client: Client, tmp_path: Path
) -> None:
    (tmp_path / "terms.txt").write_text("TestCorp pays in thirty days. " * 200)
    quiet = {"stdout": StringIO(), "stderr": StringIO()}
    file = str(tmp_path / "terms.txt")
    call_command("documents_import", file, "--visibility", "public", **quiet)
    passages = Memory.objects.count()
    assert passages > 1
    assert types() == ["memory.created"] * passages
    document_id = {data["document_id"] for _, data in told()}
    call_command("forget", "document", *document_id, "--yes", stdout=StringIO())
    assert types()[passages:] == ["document.forgotten"] + ["memory.forgotten"] * passages
    receipt = str(ForgetReceipt.objects.get().receipt_id)
    assert {data["receipt_id"] for _, data in told()[passages:]} == {receipt}


def test_a_session_that_ends_by_time_by_reset_and_by_rest_is_told_of(
    endpoint: WebhookEndpoint, receiver: Receiver, world: World, api: Api
) -> None:
    for who in (CLIENT, OTHER_CLIENT):
        world.say(who, "hello")
    first, second = (world.session(who) for who in (CLIENT, OTHER_CLIENT))
    sessions_expire(now=timezone.now() + timedelta(hours=25), timeout=timedelta(hours=24))
    world.say(CLIENT, "/reset")
    third = ChatSession.objects.filter(chat=first.chat, status="expired").latest("created_at")
    api.post(f"sessions/{world.session(CLIENT).pk}/expire/")
    send_all()
    events = receiver.events(endpoint.secret)
    ended = [event for event in events if event["type"] == "session.expired"]
    ids = [event["data"]["session_id"] for event in ended]
    assert {str(first.pk), str(second.pk), str(third.pk)} < set(ids)
    assert len(ids) == len(set(ids)) == 4
    (told_first,) = [event for event in ended if event["data"]["session_id"] == str(first.pk)]
    first.refresh_from_db()
    assert told_first["data"]["whatsapp_chat"] == CLIENT
    assert first.expired_at is not None
    assert told_first["data"]["expired_at"] == first.expired_at.isoformat().replace("+00:00", "Z")


def test_a_card_is_told_of_when_it_is_made_anew(endpoint: WebhookEndpoint, world: World) -> None:
    world.say(CLIENT, "We will ship the parrots on Monday")
    session_id = world.session(CLIENT).pk
    for _ in range(2):
        cards_make(session_ids=[session_id])
    assert [kind for kind, _ in told()] == ["card.made"]
    assert told()[0][1]["session_id"] == str(session_id)
    world.say(CLIENT, "And on Tuesday the cage")
    cards_make(session_ids=[session_id])
    assert types() == ["card.made", "card.made"]
    assert "parrots" not in json.dumps(told())


def test_an_answer_that_is_refused_has_failed(endpoint: WebhookEndpoint, world: World) -> None:
    world.provider.fail_next(SendError("refused", permanent=True))
    world.say(CLIENT, "hello")
    turn = Turn.objects.get()
    assert turn.state == "failed"
    ((kind, data),) = told()
    assert kind == "turn.failed"
    assert data == {
        "turn_id": str(turn.turn_id),
        "session_id": str(turn.session_id),
        "message_id": str(turn.message_id),
        **{"stage": "sending", "outcome": "failed", "error_code": "other"},
    }


def test_a_message_without_an_answer_has_failed(endpoint: WebhookEndpoint, world: World) -> None:
    mute = RecordingProvider(name="cloud", text_limit=0)
    providers = {**world.dependencies.providers, "cloud": mute}
    world.use(providers=providers)
    world.receive(message_from(CLIENT, "hello"))
    for _ in range(6):
        Turn.objects.update(not_before=None)
        world.work()
    assert Turn.objects.get().state == "failed"
    assert [(kind, data["stage"]) for kind, data in told()] == [("turn.failed", "answering")]
    assert told()[0][1]["error_code"] == "answer_fault"


def test_what_is_rolled_back_is_not_told(endpoint: WebhookEndpoint) -> None:
    def remember_and_fail() -> None:
        with transaction.atomic():
            remember(PARROTS)
            assert WebhookDelivery.objects.exists()
            raise LookupError

    with pytest.raises(LookupError):
        remember_and_fail()
    assert not WebhookDelivery.objects.exists()


def test_an_endpoint_is_told_of_what_it_wants_only(receiver: Receiver, world: World) -> None:
    endpoint_at(receiver.url, "sessions", event_types=["session.expired"])
    endpoint_at(receiver.url, "both", event_types=["session.expired", "memory.created"])
    world.remember(CLIENT, PARROTS)
    world.say(CLIENT, "/reset")
    rows = list(WebhookDelivery.objects.select_related("endpoint"))
    assert sorted((row.endpoint.name, row.event_type) for row in rows) == [
        ("both", "memory.created"),
        ("both", "session.expired"),
        ("sessions", "session.expired"),
    ]
    expired = {row.event_id for row in rows if row.event_type == "session.expired"}
    assert len(expired) == 1, "one event has one id, whoever is told of it"


def test_a_bound_endpoint_is_told_of_its_chats_only(receiver: Receiver, world: World) -> None:
    world.say(CLIENT, "hello")
    bound = endpoint_at(receiver.url, chat_ids=[world.chat(CLIENT).pk])
    for who in (CLIENT, OTHER_CLIENT, GODFATHER):
        world.remember(who, f"{PARROTS} called {who[:11]}")
        world.say(who, "/reset")
    remember("We open at nine", visibility="public")
    send_all()
    events = receiver.events(bound.secret)
    assert [event["type"] for event in events if event["type"] not in OF_EACH_TURN] == [
        "memory.created",
        "session.expired",
    ]
    assert {event["data"]["whatsapp_chat"] for event in events} == {CLIENT}


def test_a_bound_chat_that_is_merged_is_followed(receiver: Receiver, world: World) -> None:
    bsuid = "US.10000000000000000001"
    world.say(CLIENT, "hello", party=Party(bsuid=bsuid))
    old = world.chat(f"{bsuid}@bsuid")
    world.say(CLIENT, "hello")
    young = world.chat(CLIENT)
    endpoint_at(receiver.url, chat_ids=[young.pk])
    world.remember(CLIENT, PARROTS)
    world.say(CLIENT, "it is me", party=Party(phone=CLIENT[:11], bsuid=bsuid))
    assert not Chat.objects.filter(pk=young.pk).exists()
    assert WebhookEndpoint.objects.get().chat_ids == [old.pk]
    assert set(WebhookDelivery.objects.values_list("chat_id", flat=True)) == {old.pk}
    assert ("memory.changed", ["whatsapp_chat"]) in [
        (kind, data.get("fields")) for kind, data in told()
    ]


def test_when_a_person_is_erased_the_receiver_learns_which_memories_are_gone_and_not_whose(
    endpoint: WebhookEndpoint, receiver: Receiver, world: World
) -> None:
    world.remember(CLIENT, PARROTS)
    world.remember(OTHER_CLIENT, "The other one has a dog")
    send_all()
    world.say(CLIENT, "/reset")
    chat = world.chat(CLIENT)
    gone = str(Memory.objects.get(content=PARROTS).pk)
    sessions = [str(each.pk) for each in chat.sessions.order_by("created_at")]
    receipt = world.forget("chat", chat.pk)
    # A memory, a session, two messages and their answers.
    assert receipt.swept["hooks_webhookdelivery"] == 8
    send_all()
    erased, last = receiver.events(endpoint.secret)[-2:]
    assert (erased["type"], last["type"]) == ("chat.erased", "memory.forgotten")
    assert erased["data"] == {
        "session_ids": sessions,
        "receipt_id": str(receipt.receipt_id),
        "whatsapp_chat": None,
    }
    assert last["data"] == {
        "memory_id": gone,
        "status": "active",
        "visibility": "chat",
        "receipt_id": str(receipt.receipt_id),
        "whatsapp_chat": None,
    }
    rows = str(list(WebhookDelivery.objects.values()))
    assert str(chat.pk) not in rows
    assert CLIENT.split("@")[0] not in rows
    assert WebhookDelivery.objects.filter(chat_id=world.chat(OTHER_CLIENT).pk).count() == 3


def test_no_delivery_ever_holds_a_phone_number(endpoint: WebhookEndpoint, world: World) -> None:
    world.remember(CLIENT, PARROTS)
    world.say(CLIENT, "/reset")
    memory_pin(memory_id=UUID(told()[0][1]["memory_id"]), actor=SYSTEM)
    assert len(told()) == 3
    assert "15550100123" not in str(list(WebhookDelivery.objects.values()))


def test_every_kind_of_event_is_documented() -> None:
    document = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text()
    assert all(f"| `{name}` |" in document for name in EVENT_TYPES)
