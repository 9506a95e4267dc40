"""What only the owner sees of a client's chat is out of reach of tokens bound to that chat."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memories_app.models import Memory
from sessions_app.models import Chat
from tests.api.calling import Api, api_with
from tests.world import CLIENT, GODFATHER

SECRET = "zebra-note"


@pytest.fixture
def note(api: Api) -> Callable[[str], str]:
    """Stores a memory that only the owner sees, from a chat, and returns its id."""

    def store(chat: str) -> str:
        body = {"content": f"A slow payer, {SECRET}", "whatsapp_chat": chat, "visibility": "owner"}
        answer = api.post("memories/", body)
        assert answer.status_code == 201, answer.content
        return str(answer.json()["memory_id"])

    return store


def bound(chat: str) -> Api:
    return api_with(chat_ids=[Chat.objects.get(whatsapp_chat=chat).pk])


def body_of(answer: Any) -> str:
    content = b"".join(answer) if getattr(answer, "streaming", False) else answer.content
    return str(content.decode())


READS = ("memories/", f"memories/?whatsapp_chat={CLIENT}", "memories/export/", "memories/{key}/")


@pytest.mark.parametrize("path", READS)
def test_no_reading_call_shows_it(note: Callable[[str], str], path: str) -> None:
    key = note(CLIENT)
    own = {"content": "Likes tea", "whatsapp_chat": CLIENT, "visibility": "chat"}
    assert api_with().post("memories/", own).status_code == 201
    answer = bound(CLIENT).get(path.format(key=key))
    assert answer.status_code == (404 if "{key}" in path else 200)
    shown = body_of(answer)
    assert SECRET not in shown
    assert "{key}" in path or "Likes tea" in shown


def test_no_changing_call_finds_it(note: Callable[[str], str]) -> None:
    key = note(CLIENT)
    api = bound(CLIENT)
    for method, body in (("PATCH", {"pinned": True}), ("DELETE", None)):
        assert api.call(method, f"memories/{key}/", body).status_code == 404
    recalled = api.post("memories/recall/", {"query": SECRET})
    assert SECRET not in json.dumps(recalled.json())
    memory = Memory.objects.get(pk=key)
    assert (memory.pinned, memory.visibility) == (False, "owner")


def test_saying_the_same_neither_shows_nor_changes_it(note: Callable[[str], str]) -> None:
    key = note(CLIENT)
    body = {"content": f"A slow payer, {SECRET}", "whatsapp_chat": CLIENT, "visibility": "chat"}
    answer = bound(CLIENT).post("memories/", body)
    assert answer.status_code == 201
    assert answer.json()["memory_id"] != key


def test_it_is_out_of_reach_in_the_owners_chat_too(
    note: Callable[[str], str], settings: Any
) -> None:
    settings.GODFATHER_PHONE = frozenset({GODFATHER})
    key = note(GODFATHER)
    api = bound(GODFATHER)
    assert api.get(f"memories/{key}/").status_code == 404
    body = {"query": SECRET, "whatsapp_chat": GODFATHER, "min_similarity": 0}
    for path in ("memories/", f"memories/?whatsapp_chat={GODFATHER}", "memories/export/"):
        assert SECRET not in body_of(api.get(path))
    assert SECRET not in body_of(api.post("memories/recall/", body))


def test_an_unbound_token_sees_it(api: Api, note: Callable[[str], str]) -> None:
    assert SECRET in body_of(api.get(f"memories/{note(CLIENT)}/"))
