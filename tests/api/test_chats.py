"""Chats: list, detail, erasure."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.rest_kit.models import ApiToken
from sessions_app.merging.merge_chats import chat_merge
from sessions_app.models import Chat
from tests.api.calling import Api, api_with, error_of
from tests.api.test_chat import CLIENT, OTHER, say

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


def test_what_staff_read_is_in_the_audit_log_and_what_integrations_read_is_not(
    api: Api, django_user_model: type[User]
) -> None:
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
