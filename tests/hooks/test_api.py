"""Endpoints over REST: made, tested, rotated, redelivered; and the log of events."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent, hooks_raise
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery, WebhookEvent
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of
from tests.hooks.receiver import Receiver, send_all, verified
from tests.threads import elsewhere
from tests.world import CLIENT, OTHER_CLIENT

ENDPOINTS = "webhooks/endpoints/"


@pytest.fixture(autouse=True)
def loopback_is_allowed(settings: Any) -> None:
    settings.WEBHOOKS_ALLOW_HTTP = True
    settings.WEBHOOKS_PRIVATE_NETWORKS = ["127.0.0.0/8"]


def made(api: Api, receiver: Receiver, **given: Any) -> dict[str, Any]:
    answer = api.post(ENDPOINTS, {"name": "crm", "url": receiver.url, **given})
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    assert answer["Location"].endswith(f"/api/v1/{ENDPOINTS}{found['endpoint_id']}/")
    return found


def say(api: Api, content: str = "Hello", chat: str = CLIENT) -> dict[str, Any]:
    answer = api.post("chat/", {"whatsapp_chat": chat, "content": content})
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def log(api: Api, query: str = "") -> Any:
    answer = api.get(f"events/{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


@pytest.mark.django_db
def test_an_endpoint_is_made_tested_rotated_changed_and_removed(
    api: Api, receiver: Receiver
) -> None:
    new = made(api, receiver, event_types=["memory.created"])
    path = f"{ENDPOINTS}{new['endpoint_id']}/"
    assert (new["state"], new["whatsapp_chats"]) == ("unused", None)
    tested = api.post(f"{path}test/").json()
    assert (tested["delivered"], tested["status"], tested["error"]) == (True, 204, "")
    assert tested["milliseconds"] >= 0
    assert receiver.events(new["secret"])[0]["type"] == "webhook.test"
    rotated = api.post(f"{path}rotate/", {"keep_hours": 1}).json()
    assert rotated["old_secret_until"] > rotated["created_at"]
    receiver.status = 500
    failed = api.post(f"{path}test/").json()
    assert (failed["delivered"], failed["status"]) == (False, 500)
    assert "500" in failed["error"]
    for secret in (new["secret"], rotated["secret"]):
        assert verified(receiver.requests[-1], secret)["type"] == "webhook.test"
    shown = api.get(path)
    assert "secret" not in shown.json()
    assert (shown.json()["state"], api.walk(ENDPOINTS)) == ("failing", [shown.json()])
    # An ETag as a proxy that compresses makes it.
    weak = f"W/{shown['ETag']}"
    changed = api.call("PATCH", path, {"enabled": False}, If_Match=weak)
    assert (changed.status_code, changed.json()["state"]) == (200, "disabled")
    assert error_of(api.post(f"{path}test/"), 409)["code"] == "conflict"
    error_of(api.call("PATCH", path, {"name": "late"}, If_Match=weak), 412)
    error_of(api.delete(path, If_Match=weak), 412)
    key = str(uuid4())
    assert [api.delete(path, Idempotency_Key=key).status_code for _ in range(2)] == [204, 204]
    error_of(api.get(path), 404)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "attr"),
    [
        ({"url": "http://10.0.0.1/"}, "url"),
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": ""}, "url"),
        ({"name": " "}, "name"),
        ({"event_types": ["memory.eaten"]}, "event_types.0"),
        ({"whatsapp_chats": ["nobody at all"]}, "whatsapp_chats.0"),
        ({"secret": "whsec_mine"}, "secret"),
        ({"name": "taken"}, "name"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_made(
    given: dict[str, Any], attr: str, api: Api, receiver: Receiver
) -> None:
    made(api, receiver, name="taken")
    body = {"name": "crm", "url": receiver.url, **given}
    assert error_of(api.post(ENDPOINTS, body), 400)["attr"] == attr
    assert len(api.walk(ENDPOINTS)) == 1


@pytest.mark.django_db
def test_a_failed_delivery_is_listed_and_sent_again(api: Api, receiver: Receiver) -> None:
    path = f"{ENDPOINTS}{made(api, receiver, event_types=['memory.created'])['endpoint_id']}/"
    receiver.status = 410
    api.post("memories/", {"content": "We open at nine"})
    send_all()
    (row,) = api.walk(f"{path}deliveries/?state=failed&type=memory.created")
    assert (row["attempts"], row["status"]) == (1, 410)
    receiver.status = 204
    api.call("PATCH", path, {"enabled": True})
    again = api.post(f"{path}deliveries/{row['delivery_id']}/redeliver/")
    assert (again.status_code, again.json()["state"]) == (200, "pending")
    send_all()
    assert receiver.ids() == [row["webhook_id"]] * 2
    assert api.walk(f"{path}deliveries/")[0]["state"] == "delivered"
    error_of(api.post(f"{path}deliveries/{uuid4()}/redeliver/"), 404)


@pytest.mark.django_db
def test_a_bound_token_reaches_what_is_of_its_chats_alone(api: Api, receiver: Receiver) -> None:
    for chat in (CLIENT, OTHER_CLIENT):
        say(api, chat=chat)
    all_chats = made(api, receiver, name="all")
    others = made(api, receiver, name="others", whatsapp_chats=[CLIENT, OTHER_CLIENT])
    bound = api_with("read", "write", chat_ids=[Chat.objects.get(whatsapp_chat=CLIENT).pk])
    own = made(bound, receiver, name="own")
    assert own["whatsapp_chats"] == [CLIENT]
    nothing: list[list[str] | None] = [None, []]
    for chats in nothing:
        changed = bound.call(
            "PATCH", f"{ENDPOINTS}{own['endpoint_id']}/", {"whatsapp_chats": chats}
        )
        assert changed.json()["whatsapp_chats"] == [CLIENT]
    assert [each["name"] for each in bound.walk(ENDPOINTS)] == ["own"]
    for endpoint in (all_chats, others):
        path = f"{ENDPOINTS}{endpoint['endpoint_id']}/"
        for method, address in [
            ("GET", path),
            ("PATCH", path),
            ("DELETE", path),
            ("POST", f"{path}test/"),
            ("POST", f"{path}rotate/"),
            ("GET", f"{path}deliveries/"),
        ]:
            error_of(bound.call(method, address, {}), 404)
    body = {"name": "more", "url": receiver.url, "whatsapp_chats": [OTHER_CLIENT]}
    error_of(bound.post(ENDPOINTS, body), 404)
    owners = {"content": "x", "whatsapp_chat": CLIENT, "visibility": "owner"}
    memory_id = api.post("memories/", owners).json()["memory_id"]
    api.post("memories/", {"content": "We open at nine"})
    seen = log(bound)["results"]
    assert {each["data"]["whatsapp_chat"] for each in seen} == {CLIENT}
    assert "memory.created" not in {each["type"] for each in seen}
    assert log(bound, f"?whatsapp_chat={OTHER_CLIENT}")["results"] == []
    assert len(log(api)["results"]) > len(seen)
    # It may have seen the memory before only the owner did.
    api.delete(f"memories/{memory_id}/")
    assert log(bound)["results"][-1]["type"] == "memory.forgotten"


@pytest.mark.django_db
def test_a_list_asks_for_the_chats_of_all_endpoints_at_once(api: Api, receiver: Receiver) -> None:
    counts = []
    for name, chats in [("one", [CLIENT]), ("more", [OTHER_CLIENT, CLIENT])]:
        made(api, receiver, name=name, whatsapp_chats=chats)
        with CaptureQueriesContext(connection) as asked:
            shown = api.walk(ENDPOINTS)
        counts.append(len(asked))
    assert [each["whatsapp_chats"] for each in shown] == [sorted([CLIENT, OTHER_CLIENT]), [CLIENT]]
    assert counts[0] == counts[1]


@pytest.mark.django_db
def test_a_message_and_its_answer_are_told_and_logged_alike(api: Api, receiver: Receiver) -> None:
    kinds = ["message.received", "turn.answered", "turn.degraded"]
    endpoint = made(api, receiver, event_types=kinds)
    said = say(api, "/help")
    send_all()
    told = receiver.events(endpoint["secret"])
    assert [each["type"] for each in told] == kinds[:2]
    ids = {name: said[name] for name in ("turn_id", "session_id", "message_id")}
    assert told[0]["data"] == {**ids, "kind": "text", "whatsapp_chat": CLIENT}
    reply = {"reply_message_id": said["reply_message_id"]}
    outcome = {"outcome": "answered", "error_code": None}
    assert told[1]["data"] == {**ids, **reply, **outcome, "whatsapp_chat": CLIENT}
    query = "?type=message.received&type=turn.answered"
    logged = log(api, query)["results"]
    assert [{name: each[name] for name in told[0]} for each in logged] == told
    assert [each["id"] for each in logged] == receiver.ids()
    # Catching up from what a receiver saw last.
    assert log(api, f"{query}&after={receiver.ids()[0]}")["results"] == logged[1:]


@pytest.mark.django_db
def test_the_log_is_read_on_from_its_end_and_forgets(api: Api) -> None:
    assert log(api) == {"results": [], "next_cursor": None, "has_more": False}
    for number in range(3):
        api.post("memories/", {"content": f"Fact {number}", "whatsapp_chat": CLIENT})
    first = log(api, "?limit=2")
    assert (len(first["results"]), first["has_more"]) == (2, True)
    end = log(api, f"?after={first['next_cursor']}")
    assert (len(end["results"]), end["has_more"]) == (1, False)
    here = f"?after={end['next_cursor']}"
    assert log(api, here) == {**end, "results": []}
    assert api.delete(f"chats/{CLIENT}/").status_code == 200
    assert {each["type"] for each in log(api, here)["results"]} == {
        "memory.forgotten",
        "chat.erased",
    }
    left = log(api)["results"]
    assert {each["type"] for each in left} == {"memory.forgotten", "chat.erased"}
    assert {each["data"]["whatsapp_chat"] for each in left} == {None}
    for cursor, code in [("nothing", "invalid_cursor"), (f"evt_{uuid4().hex}", "cursor_gone")]:
        error = error_of(api.get(f"events/?after={cursor}"), 400)
        assert (error["code"], error["attr"]) == (code, "after")


@pytest.mark.django_db
def test_without_a_log_nothing_is_written_for_nobody(api: Api, settings: Any) -> None:
    settings.EVENT_LOG_DAYS = 0
    say(api, "/help")
    assert not WebhookEvent.objects.exists()
    assert not WebhookDelivery.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_is_committed_late_is_not_missed(api: Api) -> None:
    """The row of an open transaction has a lower id than one that a reader has seen already."""

    with transaction.atomic():
        hooks_raise([HookEvent("card.made", uuid4())])
        elsewhere(lambda: hooks_raise([HookEvent("session.expired", uuid4())]))
        seen = elsewhere(lambda: log(api))
    assert [each["type"] for each in seen["results"]] == ["session.expired"]
    late = log(api, f"?after={seen['next_cursor']}")["results"]
    assert [each["type"] for each in late] == ["card.made"]
