"""A token that is bound to one chat needn't name it; one that is bound to several is told them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memories_app.models import Memory
from sessions_app.conversations.facade import token_chats
from sessions_app.models import ChatSession
from tests.api.calling import Api, error_of
from tests.api.test_chat import say

pytestmark = pytest.mark.django_db

ONE, OTHER = "15550100123@c.us", "15550100456@c.us"


def bound(token: Callable[..., str], *names: str) -> Api:
    return Api(token("read", "write", chat_ids=token_chats(names)))


def calls(api: Api, **named: Any) -> list[Any]:
    """Every call that is about a chat."""
    fact = {"content": "TestCorp pays in 30 days", **named}
    return [
        api.post("memories/", fact),
        api.post("memories/batch/", {"memories": [{**fact, "content": "We meet on Monday"}]}),
        api.post("sessions/", named),
        api.post("chat/", {"content": "hello", **named}),
    ]


def test_the_one_chat_is_meant(token: Callable[..., str]) -> None:
    api = bound(token, ONE)
    assert [answer.status_code for answer in calls(api)] == [201, 201, 201, 200]
    assert {each.visibility for each in Memory.objects.all()} == {"chat"}
    shown = {each["whatsapp_chat"] for each in api.walk("memories/")}
    assert shown == {ONE}
    assert ChatSession.objects.get().chat.whatsapp_chat == ONE


def test_transcripts_go_into_the_one_chat(token: Callable[..., str]) -> None:
    api = bound(token, ONE)
    text = "User: When do you open?\nAssistant: At nine.\n"
    saved = api.post("transcripts/", {"text": text})
    assert saved.json()["whatsapp_chat"] == ONE
    assert b"".join(api.get(saved["Location"])).decode() == text
    checked = api.post("transcripts/validate/", {"text": text}).json()
    # It was compared with what is stored.
    assert [problem["code"] for problem in checked["problems"]] == ["ambiguous"]
    assert error_of(bound(token, ONE, OTHER).post("transcripts/", {"text": text}), 400)


def test_its_messages_are_recalled_too(api: Api, token: Callable[..., str]) -> None:
    say(api, "The gate code is 4711", ONE)
    say(api, "The gate code is 9999", OTHER)
    caller = bound(token, ONE)
    question = {"query": "What is the gate code?", "min_similarity": 0}
    found = caller.post("memories/recall/", question).json()["results"]
    assert (
        found
        == caller.post("memories/recall/", {**question, "whatsapp_chat": ONE}).json()["results"]
    )
    assert "message" in {each["source"] for each in found}
    assert "9999" not in str(found)


def test_several_chats_are_named_in_the_refusal(token: Callable[..., str]) -> None:
    api = bound(token, OTHER, ONE)
    for answer, status in zip(calls(api), [403, 403, 400, 400], strict=True):
        assert f"{ONE}, {OTHER}" in error_of(answer, status)["detail"]
    assert not Memory.objects.exists()
    assert all(answer.status_code < 300 for answer in calls(api, whatsapp_chat=OTHER))


def test_an_unbound_token_names_the_chat(api: Api) -> None:
    for path, body in [("sessions/", {}), ("chat/", {"content": "hello"})]:
        error = error_of(api.post(path, body), 400)
        assert (error["code"], error["attr"]) == ("required", "whatsapp_chat")
    stored = api.post("memories/", {"content": "We open at 9"}).json()
    assert (stored["visibility"], stored["whatsapp_chat"]) == ("owner", None)
