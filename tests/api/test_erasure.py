"""DELETE of everything that can be erased: receipts, preconditions, repeated calls, and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from memories_app.models import Memory, MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.outgoing_webhooks.models import WebhookDelivery
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from sessions_app.models import Chat, ChatSession, ForgetReceipt, Message
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import say
from tests.hooks.receiver import endpoint_at
from tests.world import CLIENT, OTHER_CLIENT

pytestmark = pytest.mark.django_db

RECEIPT = {
    *("receipt_id", "kind", "object_id", "forgotten_at", "swept", "probe", "probe_details", "left")
}
SECRET = "The gate code is zebra4711"
DOCUMENT = "documents/decisions/use-postgres/"
KINDS = ("memory", "message", "messages", "session", "chat", "memory_document")


class Things:
    """One of each kind of things that can be erased, with its address."""

    def __init__(self, api: Api) -> None:
        said = say(api, f"/remember {SECRET}")
        session = said["session_id"]
        memory = Memory.objects.get()
        body = {"messages": [{"role": "user", "content": "My cat is called Mitzi Bluewhale"}]}
        message = api.post(f"sessions/{session}/messages/", body).json()["messages"][0]
        api.call("PUT", DOCUMENT, {"decision": "Use PostgreSQL everywhere", "status": "accepted"})
        self.session_id, self.message_id, self.memory_id = session, message["message_id"], memory.pk
        self.document_id = MemoryDocument.objects.get().pk
        self.chat_id = Chat.objects.get().pk
        self.path = {
            "memory": f"memories/{memory.pk}/",
            "message": f"sessions/{session}/messages/{message['message_id']}/",
            "messages": f"sessions/{session}/messages/",
            "session": f"sessions/{session}/",
            "chat": f"chats/{CLIENT}/",
            "memory_document": DOCUMENT,
        }
        self.read = {**self.path, "messages": f"sessions/{session}/"}
        self.object_id = {
            "memory": memory.pk,
            "message": message["message_id"],
            "messages": session,
            "session": session,
            "chat": self.chat_id,
            "memory_document": self.document_id,
        }


@pytest.fixture(scope="module")
def things(module_rows: None) -> Things:
    return Things(api_with())


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_erased_once_with_a_receipt(kind: str, api: Api, things: Things) -> None:
    answer = api.delete(things.path[kind])
    assert answer.status_code == 200, answer.content
    receipt = answer.json()
    assert set(receipt) == RECEIPT
    assert (receipt["kind"], receipt["probe"]) == (kind, "absent")
    assert receipt["object_id"] == str(things.object_id[kind])
    assert sum(receipt["swept"].values()) > 0
    assert receipt["probe_details"]
    error_of(api.delete(things.path[kind]), 404)
    if kind != "messages":
        error_of(api.get(things.path[kind]), 404)
    assert api.get(f"receipts/{receipt['receipt_id']}/").json() == receipt
    (found,) = api.get(f"receipts/?object_id={things.object_id[kind]}").json()["results"]
    assert found == receipt


def test_what_is_erased_is_gone_and_the_rest_stays(api: Api, things: Things) -> None:
    before = api.walk(things.path["messages"])
    api.delete(things.path["message"])
    after = api.walk(things.path["messages"])
    assert [each for each in before if each["message_id"] != things.message_id] == after
    assert "Bluewhale" not in str(after)
    assert Memory.objects.filter(pk=things.memory_id).exists()
    api.delete(things.path["session"])
    assert not ChatSession.objects.filter(pk=things.session_id).exists()
    assert not Message.objects.exists()
    assert not Memory.objects.exists(), "it was learned in this session alone"
    assert Chat.objects.filter(pk=things.chat_id).exists()
    api.delete(DOCUMENT)
    assert not MemoryDocumentVersion.objects.exists()


def test_one_message_can_be_read(api: Api, things: Things) -> None:
    answer = api.get(things.path["message"])
    assert answer.json() in api.get(things.path["messages"]).json()["results"]
    assert api.get(things.path["message"], If_None_Match=answer["ETag"]).status_code == 304
    error_of(api.get(f"sessions/{uuid4()}/messages/{things.message_id}/"), 404)
    error_of(api.get(f"sessions/{things.session_id}/messages/{uuid4()}/"), 404)
    error_of(api.delete(f"sessions/{uuid4()}/messages/{things.message_id}/"), 404)


@pytest.mark.parametrize("kind", KINDS)
def test_a_precondition_is_checked_before_all(kind: str, api: Api, things: Things) -> None:
    path = things.path[kind]
    error_of(api.delete(path, If_Match='"nonsense"'), 412)
    error_of(api.delete(path, If_Match='"nonsense"', Idempotency_Key="one"), 412)
    assert not ForgetReceipt.objects.exists()
    assert not IdempotentAnswer.objects.filter(status__isnull=False).exists()
    etag = api.get(things.read[kind])["ETag"]
    answer = api.delete(path, If_Match=etag, Idempotency_Key="one")
    assert answer.status_code == 200, answer.content
    error_of(api.delete(path, If_Match=etag), 404)


CHANGES: dict[str, Callable[[Api, Things], Any]] = {
    "memory": lambda api, things: api.call("PATCH", things.path["memory"], {"pinned": True}),
    "session": lambda api, things: say(api, "hello"),
    "messages": lambda api, things: say(api, "hello"),
    "memory_document": lambda api, things: api.call("PUT", DOCUMENT, {"decision": "Use another"}),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_version_changed_meanwhile_is_not_erased(kind: str, api: Api, things: Things) -> None:
    etag = api.get(things.read[kind])["ETag"]
    CHANGES[kind](api, things)
    error_of(api.delete(things.path[kind], If_Match=etag), 412)
    assert not ForgetReceipt.objects.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_key_gives_the_same_receipt(kind: str, api: Api, things: Things) -> None:
    first = api.delete(things.path[kind], Idempotency_Key="k1")
    again = api.delete(things.path[kind], Idempotency_Key="k1")
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert again["Idempotent-Replayed"] == "true"
    assert ForgetReceipt.objects.count() == 1
    error_of(api.delete(things.path[kind]), 404)
    error_of(api.delete("documents/decisions/another/", Idempotency_Key="k1"), 422)


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_crashed_finds_its_receipt_again(kind: str, api: Api, things: Things) -> None:
    first = api.delete(things.path[kind], Idempotency_Key="k1")
    # As a server leaves it that was killed after the erasure was committed.
    IdempotentAnswer.objects.all().delete()
    again = api.delete(things.path[kind], Idempotency_Key="k1")
    assert again.json() == first.json()
    assert ForgetReceipt.objects.count() == 1
    error_of(api.delete("documents/decisions/another/", Idempotency_Key="k1"), 422)


def test_receipts_are_found_by_person_also_of_an_erased_chat(api: Api, things: Things) -> None:
    say(api, "/remember The lift is slow", OTHER_CLIENT)
    other = Memory.objects.get(content="The lift is slow")
    order = ("message", "memory", "session", "chat")
    receipts = [api.delete(things.path[kind]).json() for kind in order]
    api.delete(f"memories/{other.pk}/")
    found = api.get(f"receipts/?whatsapp_chat={CLIENT}").json()["results"]
    assert found == receipts[::-1]
    for spelled in ("15550100123", "%2B15550100123@C.US", "15550100123@s.whatsapp.net"):
        assert api.get(f"receipts/?whatsapp_chat={spelled}").json()["results"] == found, spelled
    (only,) = api.get(f"receipts/?whatsapp_chat={OTHER_CLIENT}").json()["results"]
    assert only["object_id"] == str(other.pk)
    kinds = api.get(f"receipts/?whatsapp_chat={CLIENT}&kind=chat").json()["results"]
    assert [each["kind"] for each in kinds] == ["chat"]
    assert api.get("receipts/?since=2100-01-01T00:00:00Z").json()["results"] == []
    assert api.get("receipts/?whatsapp_chat=15559999999@c.us").json()["results"] == []
    assert len(api.walk("receipts/?limit=2")) == 5
    error_of(api.get("receipts/?kind=zz"), 400)
    error_of(api.get("receipts/?object_id=zz"), 400)
    row = ForgetReceipt.objects.get(kind="chat")
    assert CLIENT.partition("@")[0] not in str(vars(row))


def test_staff_find_receipts_of_the_erased(api: Api, things: Things, admin_client: Client) -> None:
    erased = api.delete(things.path["chat"]).json()
    document = api.delete(DOCUMENT).json()

    def found(term: str) -> set[str]:
        page = admin_client.get("/admin/sessions_app/forgetreceipt/", {"q": term})
        return {str(receipt.receipt_id) for receipt in page.context["cl"].result_list}

    assert found(CLIENT) == {erased["receipt_id"]}
    assert erased["receipt_id"] not in found(OTHER_CLIENT)
    assert found(document["receipt_id"]) == {document["receipt_id"]}


def test_a_bound_token_finds_the_receipts_of_its_chats_alone(api: Api, things: Things) -> None:
    say(api, "/remember The lift is slow", OTHER_CLIENT)
    other = Memory.objects.get(content="The lift is slow")
    bound = api_with(chat_ids=[things.chat_id])
    body = {"content": "Pays late", "whatsapp_chat": CLIENT, "visibility": "owner"}
    owners = api.post("memories/", body).json()["memory_id"]
    own = bound.delete(things.path["message"]).json()
    hidden = [api.delete(f"memories/{key}/").json() for key in (other.pk, owners)]
    document = api.delete(DOCUMENT).json()
    erased = bound.delete(things.path["chat"]).json()
    assert bound.get("receipts/").json()["results"] == [erased, own]
    assert bound.get(f"receipts/{own['receipt_id']}/").json() == own
    for each in (*hidden, document):
        error_of(bound.get(f"receipts/{each['receipt_id']}/"), 404)
        assert bound.get(f"receipts/?object_id={each['object_id']}").json()["results"] == []
    assert len(api.get("receipts/").json()["results"]) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_log_names_the_receipt(kind: str, api: Api, things: Things) -> None:
    receipt = api.delete(things.path[kind]).json()["receipt_id"]
    event = AuditEvent.objects.get(action=f"{kind}.forgotten")
    assert (event.object_type, event.object_id) == ("receipt", receipt)
    assert (event.actor_kind, event.actor) == ("api", "tests")
    assert (event.details.get("object_id") == str(things.object_id[kind])) is (kind != "chat")
    for action in ("memory.forget", "memory_document.remove"):
        for each in AuditEvent.objects.filter(action=action):
            assert each.details["receipt_id"] == receipt
    if kind == "memory":
        (each,) = api.get(f"audit/?object_id={things.memory_id}&action=memory.forget").json()[
            "results"
        ]
        assert each["details"]["receipt_id"] == receipt


EVENTS = {
    "memory": {"memory.forgotten": 1, "message.forgotten": 2},
    "message": {"message.forgotten": 1},
    "messages": {"memory.forgotten": 1, "message.forgotten": 3},
    "session": {"memory.forgotten": 1, "session.forgotten": 1},
    "chat": {"memory.forgotten": 1, "chat.erased": 1},
    "memory_document": {"document.forgotten": 1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_integrators_are_told_what_is_erased(kind: str, api: Api, things: Things) -> None:
    endpoint = endpoint_at("http://127.0.0.1:9/hooks")
    receipt = api.delete(things.path[kind]).json()["receipt_id"]
    deliveries = WebhookDelivery.objects.filter(endpoint=endpoint)
    told = [each for each in deliveries if each.event_type != "memory.created"]
    counts: dict[str, int] = {}
    for each in told:
        counts[each.event_type] = counts.get(each.event_type, 0) + 1
        assert each.data["receipt_id"] == receipt
        assert "zebra" not in str(each.data)
        assert CLIENT not in str(each.data)
    assert counts == EVENTS[kind]
    main = {
        "memory": ("memory.forgotten", "memory_id", things.memory_id),
        "message": ("message.forgotten", "message_id", things.message_id),
        "session": ("session.forgotten", "session_id", things.session_id),
        "memory_document": ("document.forgotten", "document_id", things.document_id),
    }
    if kind in main:
        event_type, name, value = main[kind]
        (event,) = [each for each in told if each.event_type == event_type][:1]
        if kind != "memory":
            assert event.data[name] == str(value)
        assert event.chat_id == (None if kind == "memory_document" else things.chat_id)
    if kind == "chat":
        (event,) = [each for each in told if each.event_type == "chat.erased"]
        assert event.data["session_ids"] == [things.session_id]
        assert event.chat_id is None, "no delivery says who was erased"


def test_a_bound_endpoint_is_told_of_its_chat_alone(api: Api, things: Things) -> None:
    say(api, "/remember The lift is slow", OTHER_CLIENT)
    bound = endpoint_at("http://127.0.0.1:9/hooks", chat_ids=[things.chat_id])
    api.delete(f"chats/{OTHER_CLIENT}/")
    assert not WebhookDelivery.objects.filter(endpoint=bound).exists()
    api.delete(things.path["chat"])
    types = WebhookDelivery.objects.filter(endpoint=bound).values_list("event_type", flat=True)
    assert set(types) == {"memory.forgotten", "chat.erased"}


def test_in_context_the_newest_document_goes_and_the_answer_says_which(api: Api) -> None:
    saved = api.call("PUT", "documents/context/feature-auth/", {"notes": "One two three four five"})
    where = saved["Content-Location"]
    answer = api.delete("documents/context/feature-auth/", Idempotency_Key="k1")
    assert (answer.status_code, answer["Content-Location"]) == (200, where)
    again = api.delete("documents/context/feature-auth/", Idempotency_Key="k1")
    assert again["Content-Location"] == where
    error_of(api.delete("documents/context/feature-auth/"), 404)


def test_a_document_that_says_what_a_receipt_says_can_be_erased(api: Api, things: Things) -> None:
    """Receipts aren't withheld, so that they aren't searched either."""
    receipt = api.delete(f"memories/{things.memory_id}/", Idempotency_Key="k").json()
    path = "documents/decisions/proof/"
    made = api.call("PUT", path, {"decision": "Keep the proof", "proof": receipt})
    assert made.status_code == 201, made.content
    assert api.delete(path).status_code == 200
    assert api.delete(f"memories/{things.memory_id}/", Idempotency_Key="k").json() == receipt


def test_a_document_goes_although_another_one_says_the_same(api: Api) -> None:
    """The stored answers to both calls hold its text, in a form that is only one as a whole."""
    content = {"decision": "Use PostgreSQL", "status": "accepted"}
    for name in ("kept", "doomed"):
        made = api.call("PUT", f"documents/decisions/{name}/", content, Idempotency_Key=name)
        assert made.status_code == 201
    assert api.delete("documents/decisions/doomed/").status_code == 200
    assert not IdempotentAnswer.objects.filter(body__contains="accepted").exists()
    assert api.get("documents/decisions/kept/").json()["content"] == content


def test_an_archived_document_is_erased_by_its_name_there(api: Api, things: Things) -> None:
    name = api.post(f"{DOCUMENT}archive/").json()["name"]
    error_of(api.delete(DOCUMENT), 404)
    path = f"documents/decisions/{name}/?archived=true"
    error_of(api.delete(path.replace("true", "maybe")), 400)
    assert api.delete(path).status_code == 200
    error_of(api.delete(path), 404)
    assert not MemoryDocument.objects.exists()
