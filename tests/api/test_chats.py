"""Chats: list, detail, erasure."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import ApiToken
from memoryproject.foundation.rest_kit.tokens import TokenError
from sessions_app.conversations.chat_queries import token_chats
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import CLIENT, OTHER, say
from tests.world import World, message_from

pytestmark = pytest.mark.django_db


def test_chats_are_listed_and_found_by_any_address(api: Api) -> None:
    say(api, "hello")
    say(api, "hello", "120363000000000001@g.us")
    listed = api.walk("chats/")
    assert [row["whatsapp_chat"] for row in listed] == ["120363000000000001@g.us", CLIENT]
    assert api.walk("chats/?is_group=true") == listed[:1]
    assert api.walk(f"chats/?whatsapp_chat={CLIENT}") == listed[1:]
    Chat.objects.get(whatsapp_chat=CLIENT).addresses.create(
        provider="cloud", address="US.1234.abc@bsuid"
    )
    row = api.get("chats/US.1234.abc@bsuid/").json()
    assert row["whatsapp_chat"] == CLIENT
    assert row["addresses"] == [CLIENT, "US.1234.abc@bsuid"]
    error_of(api.get("chats/15550100789@c.us/"), 404)


def test_a_token_moves_along_when_two_chats_turn_out_to_be_one_person(api: Api) -> None:
    say(api, "hello")
    say(api, "hello", OTHER)
    older, younger = Chat.objects.order_by("created_at")
    bound = api_with(chat_ids=[younger.pk])
    assert len(bound.walk("chats/")) == 1
    kept = chat_merge(older, younger)
    assert [row["object_id"] for row in bound.walk("chats/")] == [str(kept.pk)]
    assert ApiToken.objects.filter(chat_ids=[kept.pk]).count() == 1


def test_what_staff_read_is_audited_alone(api: Api, django_user_model: type[User]) -> None:
    turn = say(api, "hello")
    django_user_model.objects.create_superuser("boss", password="x")
    client = Client()
    client.login(username="boss", password="x")
    staff = Api(None, client)
    paths = [
        f"sessions/{turn['session_id']}/messages/",
        f"sessions/{turn['session_id']}/card/",
        f"turns/{turn['turn_id']}/",
        f"chats/{CLIENT}/",
    ]
    question = {"query": "hello", "whatsapp_chat": CLIENT, "min_similarity": 0}
    api.post("memories/recall/", question)
    for path in paths:
        api.get(path)
    assert not AuditEvent.objects.filter(action="conversation.read").exists()
    for path in paths:
        assert staff.get(path).status_code == 200
    read = AuditEvent.objects.filter(action="conversation.read", actor="boss")
    kinds = ["card", "chat", "session", "turn"]
    assert sorted(read.values_list("object_type", flat=True)) == kinds
    assert staff.post("memories/recall/", question).status_code == 200
    assert read.count() == len(kinds) + 1


# One person is one chat, however the id is spelled.


PERSON = "15550399999@c.us"
SPELLINGS = [
    PERSON,
    "+15550399999@c.us",
    "15550399999",
    "+15550399999",
    "15550399999@C.US",
    "15550399999@s.whatsapp.net",
    "15550399999:3@s.whatsapp.net",
]
NO_IDS = ["someone", "@c.us", "😀", "..", "a/b@c.us", "../x@c.us", "0501234567", "x@example.com"]
REFUSED = "15550100123@c.us"


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_each_operation_takes_each_spelling(api: Api, spelling: str) -> None:
    session = api.post("sessions/", {"whatsapp_chat": PERSON}).json()
    again = api.post("sessions/", {"whatsapp_chat": spelling})
    assert (again.status_code, again.json()) == (200, session)
    memory = api.post("memories/", {"content": "Tea at five", "whatsapp_chat": spelling}).json()
    assert memory["whatsapp_chat"] == PERSON
    listed = quote(spelling)
    assert api.get(f"chats/{listed}/").json()["client_phone"] == "15550399999"
    assert len(api.walk(f"sessions/?whatsapp_chat={listed}")) == 1
    assert len(api.walk(f"chats/?whatsapp_chat={listed}")) == 1
    assert len(api.walk(f"memories/?whatsapp_chat={listed}")) == 1
    export = api.get(f"memories/export/?whatsapp_chat={listed}")
    assert b"Tea at five" in b"".join(export.streaming_content)
    asked = {"query": "tea", "whatsapp_chat": spelling, "min_similarity": 0}
    assert api.post("memories/recall/", asked).json()["results"]
    line = {"content": f"Imported {spelling}", "whatsapp_chat": spelling, "visibility": "chat"}
    imported = api.call("POST", "memories/import/", json.dumps(line).encode())
    assert imported.json()["created"] == 1
    text = {"text": "User: a\n\nAssistant: b\n", "whatsapp_chat": spelling}
    assert api.post("transcripts/", text).json()["whatsapp_chat"] == PERSON
    assert [chat.whatsapp_chat for chat in Chat.objects.all()] == [PERSON]


@pytest.mark.parametrize("text", NO_IDS)
def test_err_session_007_what_is_no_id_is_refused_and_makes_no_chat(api: Api, text: str) -> None:
    chat = {"whatsapp_chat": text}
    refusals = [
        api.post("sessions/", chat),
        api.post("chat/", {**chat, "content": "x"}),
        api.post("memories/", {**chat, "content": "x"}),
        api.post("memories/recall/", {**chat, "query": "x"}),
        api.post("transcripts/", {**chat, "text": "User: a\n\nAssistant: b\n"}),
        *(
            api.get(f"{path}?whatsapp_chat={quote(text)}")
            for path in ("sessions/", "chats/", "memories/", "memories/export/", "audit/")
        ),
    ]
    if "/" not in text and text != "..":
        refusals.append(api.get(f"chats/{quote(text)}/"))
        refusals.append(api.delete(f"chats/{quote(text)}/"))
    for answer in refusals:
        error = error_of(answer, 400)
        assert error["attr"] == "whatsapp_chat"
        assert REFUSED in error["detail"]
    with pytest.raises(TokenError, match=REFUSED):
        token_chats([text])
    for command in (
        ["chat", "--as", text, "--message", "x"],
        ["memories_export", "--chat", text],
        ["forget", "chat", text, "--yes"],
        ["chat_memory", "status", "--chat", text],
    ):
        with pytest.raises(CommandError, match=REFUSED) as refused:
            call_command(*command)
        assert refused.value.returncode == 2, command
    assert not Chat.objects.exists()


def test_a_chat_of_an_integrator_has_an_id_of_its_own(api: Api) -> None:
    assert api.post("sessions/", {"whatsapp_chat": "Ticket-7@external"}).status_code == 201
    assert api.post("sessions/", {"whatsapp_chat": "Ticket-7@EXTERNAL"}).status_code == 200
    assert api.post("sessions/", {"whatsapp_chat": "ticket-7@external"}).status_code == 201
    chat = api.get("chats/Ticket-7@external/").json()
    assert (chat["whatsapp_chat"], chat["client_phone"]) == ("Ticket-7@external", "")


def test_a_token_is_bound_by_any_spelling(api: Api) -> None:
    bound = api_with("read", "write", chat_ids=token_chats(["+15550399999"]))
    assert bound.post("sessions/", {"whatsapp_chat": PERSON}).status_code == 201
    assert [row["whatsapp_chat"] for row in bound.walk("chats/")] == [PERSON]


def test_an_older_chat_with_a_name_that_is_no_id_can_still_be_erased(api: Api) -> None:
    Chat.objects.create(whatsapp_chat="someone", provider="console")
    assert len(api.walk("chats/?whatsapp_chat=someone")) == 1
    assert api.get("chats/someone/").status_code == 200
    assert api.delete("chats/someone/").status_code == 200
    error_of(api.delete("chats/someone/"), 400)


def test_webhooks_and_the_api_mean_the_same_chat(world: World) -> None:
    api = api_with()
    world.receive(message_from("15550399999", "hello"))
    for spelling in SPELLINGS:
        assert api.post("sessions/", {"whatsapp_chat": spelling}).status_code == 200
    assert Chat.objects.count() == 1
