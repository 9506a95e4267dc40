"""The scopes of a token hold for what is said through chat/, and the audit log names the token."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from cards_app.models import MemoryCard
from memories_app.models import Memory
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import IdempotentAnswer
from sessions_app.models import Chat, ChatSession, ForgetReceipt, InboundDelivery, Message, Turn
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import say
from tests.world import CLIENT, GODFATHER, OTHER_CLIENT

SECRET = "zebra001"

pytestmark = pytest.mark.django_db

# What may be said with which scopes.
NEEDED = {
    "/remember the gate is green": {"write"},
    "/reset": {"write"},
    "/help": {"write"},
    "/memories": {"read", "write"},
    "/memories 2": {"read", "write"},
    "/search gate code": {"read", "write"},
    "/export": {"read", "write"},
    " /EXPORT ": {"read", "write"},
    "what is the gate code?": {"read", "write"},
    "/unknown gate code": {"read", "write"},
    "": {"read", "write"},
    f"/forget {SECRET}": {"read", "write", "forget"},
    "/FORGET\n0123abcd": {"read", "write", "forget"},
}
SCOPES = ("read", "write", "forget", "audit")


@pytest.fixture
def owner(settings: Any) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})


@pytest.fixture(scope="module")
def secret(module_rows: None) -> Memory:
    say(api_with(), f"/remember the gate code is {SECRET}", CLIENT)
    return Memory.objects.get()


def counts() -> list[int]:
    kept = (Chat, ChatSession, Message, Turn, InboundDelivery, Memory, ForgetReceipt, AuditEvent)
    return [model._default_manager.count() for model in (*kept, IdempotentAnswer)]


@pytest.mark.parametrize("text", NEEDED)
@pytest.mark.parametrize("lacking", SCOPES)
def test_what_is_said_needs_its_scopes(text: str, lacking: str, secret: Memory) -> None:
    caller = api_with(*[scope for scope in SCOPES if scope != lacking])
    before = counts()
    body = {"whatsapp_chat": CLIENT, "content": text}
    answer = caller.post("chat/", body, Idempotency_Key="one")
    if lacking not in NEEDED[text]:
        assert answer.status_code == 200, answer.content
        return
    error = error_of(answer, 403)
    assert error["code"] == "permission_denied"
    assert error["detail"].startswith(f"The token lacks the scope {lacking}"), error
    assert SECRET not in error["detail"]
    assert counts() == before
    assert Memory.objects.filter(pk=secret.pk).exists()
    streamed = caller.post("chat/", {**body, "stream": True})
    error_of(streamed, 403)
    assert counts() == before


def test_a_mention_in_a_group_hides_no_command() -> None:
    group = "120363000000000001@g.us"
    body = {"whatsapp_chat": group, "content": "@assistant /forget 0123abcd"}
    error_of(api_with("read", "write").post("chat/", body), 403)
    say(api_with("write"), "@assistant /help", group)


def test_staff_need_the_rights_of_what_they_say(admin_client: Any, secret: Memory) -> None:
    answer = Api(None, admin_client).post(
        "chat/", {"whatsapp_chat": CLIENT, "content": f"/forget {SECRET}"}
    )
    assert answer.status_code == 200
    event = AuditEvent.objects.get(action="memory.forgotten")
    assert (event.actor_kind, event.actor) == ("staff", "admin")


def test_the_audit_log_names_the_token_and_in_whose_place_it_wrote(secret: Memory) -> None:
    caller = api_with(name="crm")
    before = AuditEvent.objects.order_by("-id").values_list("pk", flat=True).first()
    say(caller, "/remember the cat is black", CLIENT)
    say(caller, "/export", CLIENT)
    say(caller, f"/forget {SECRET}", CLIENT)
    say(caller, "/reset", CLIENT)
    events = AuditEvent.objects.filter(pk__gt=before).exclude(action="token.create")
    told = {event.action: event for event in events}
    assert {
        "memory.remember", "export", "memory.forget", "memory.forgotten",
        "session.expire", "session.create",
    } <= set(told)  # fmt: skip
    person = told["export"].chat
    assert person.startswith("p-")
    for event in told.values():
        assert (event.actor_kind, event.actor) == ("api", "crm"), event
        assert event.details["on_behalf_of"] == person, event
    receipt = ForgetReceipt.objects.get()
    assert (receipt.actor_kind, receipt.actor) == ("api", "crm")


def test_the_audit_log_names_the_token_that_opened_a_session() -> None:
    caller = api_with(name="crm")
    say(caller, "hello", "15550100177@c.us")
    said = "User: q\nAssistant: a\n"
    saved = caller.post("transcripts/", {"text": said, "whatsapp_chat": "15550100178@c.us"})
    assert saved.status_code == 201, saved.content
    events = AuditEvent.objects.filter(action="session.create")
    assert [(event.actor_kind, event.actor) for event in events] == [("api", "crm")] * 2


@pytest.mark.parametrize("command", ["/memories", f"/search {SECRET}", "/export", "/forget gate"])
def test_in_the_owners_chat_a_bound_token_sees_no_memories_of_others(
    command: str, api: Api, secret: Memory, owner: None
) -> None:
    say(api, "/remember the gate of the owner is zebra002", GODFATHER)
    bound = api_with(chat_ids=[Chat.objects.get(whatsapp_chat=GODFATHER).pk])
    assert SECRET in say(api, "/memories", GODFATHER)["reply"]
    reply = say(bound, command, GODFATHER)["reply"]
    assert SECRET not in reply
    if command != f"/search {SECRET}":
        assert "zebra002" not in reply
    assert Memory.objects.count() == 2
    # What it makes the assistant remember is this chat's.
    say(bound, "/remember the bell is loud", GODFATHER)
    assert Memory.objects.get(content="the bell is loud").visibility == "chat"


def test_an_answer_recalls_what_a_token_reaches(api: Api, secret: Memory, owner: None) -> None:
    say(api, "/help", GODFATHER)
    chat = Chat.objects.get(whatsapp_chat=GODFATHER)
    bound = api_with(chat_ids=[chat.pk])
    question = "what is the gate code?"
    assert say(bound, question, GODFATHER)["memories"] == []
    session = ChatSession.objects.get(chat=chat)
    context = bound.post(f"sessions/{session.pk}/context/", {"query": question}).json()
    assert SECRET not in str(context)
    answered = say(api, question, GODFATHER)
    assert SECRET in answered["reply"]
    error_of(bound.get(f"turns/{answered['turn_id']}/"), 403)
    assert api.get(f"turns/{answered['turn_id']}/").status_code == 200
    own = say(bound, "and the door?", GODFATHER)
    assert bound.get(f"turns/{own['turn_id']}/").status_code == 200


def test_what_a_person_says_by_whatsapp_needs_no_scope(world: Any) -> None:
    world.say(OTHER_CLIENT, "/remember the lift is slow")
    event = AuditEvent.objects.get(action="memory.remember")
    assert event.actor_kind == "person"
    assert event.details.get("on_behalf_of") is None


def test_a_token_that_may_only_write_is_shown_nothing(api: Api, secret: Memory) -> None:
    writes = api_with("write")
    session = ChatSession.objects.get().pk
    before = Memory.objects.values_list("pinned", flat=True).get()
    for method, path, body in (
        ("PATCH", f"memories/{secret.pk}/", {"pinned": True}),
        ("POST", f"sessions/{session}/card/", None),
    ):
        assert SECRET not in error_of(writes.call(method, path, body), 403)["detail"]
        error_of(writes.call(method, path.replace(path.split("/")[1], str(uuid4())), body), 404)
    assert Memory.objects.values_list("pinned", flat=True).get() == before
    assert not MemoryCard.objects.exists()
    both = api_with("read", "write")
    assert both.call("PATCH", f"memories/{secret.pk}/", {"pinned": True}).status_code == 200
    assert both.post(f"sessions/{session}/card/").status_code == 201
