"""A bound token never sees another chat, nor changes anything there: with every tool, whatever
ids and names it is given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memoryproject.foundation.rest_kit.authentication import caller_with
from sessions_app.conversations.chat_queries import token_chats
from sessions_app.mcp.server import instructions_for
from sessions_app.mcp.tools import TOOLS
from tests.api.calling import Api, api_with, make_token
from tests.api.test_bound import Place, fingerprint, town as town
from tests.fuzz.damage import FACTOR
from tests.mcp.rpc import Rpc, everything

pytestmark = pytest.mark.django_db

QUESTION = "what is the gate code?"


def arguments(name: str, place: Place, named: Place | None) -> dict[str, Any]:
    """What is asked of ``place``; ``named``: the chat that is named with it."""
    chat: dict[str, Any] = {} if named is None else {"whatsapp_chat": named.whatsapp_chat}
    said = [{"role": "user", "content": "hello"}]
    every: dict[str, dict[str, Any]] = {
        # Never a stranger's word in a chat of the token's own, where later calls would show it.
        "remember": {"content": f"the code is {named.word if named else 'here'}", **chat},
        "recall": {"query": QUESTION, "min_similarity": 0, "top_k": 100, **chat},
        "forget": {"memory_id": str(place.memory_id)},
        "list_memories": chat,
        "get_memory": {"memory_id": str(place.memory_id)},
        "update_memory": {"memory_id": str(place.memory_id), "category": "codes"},
        "store_messages": {"messages": said, **(chat or {"session_id": str(place.session_id)})},
        "get_context": chat or {"session_id": str(place.session_id)},
        "list_sessions": chat,
        "get_card": {"session_id": str(place.session_id)},
        "save_document": {"category": "decisions", "identifier": "a", "content": {"decision": "x"}},
        "load_document": {"category": "decisions", "identifier": "a"},
    }
    return every[name]


@pytest.fixture(scope="module")
def carded(town: list[Place]) -> list[Place]:
    """The town, with a card of each session."""
    api = api_with()
    for place in town:
        assert api.post(f"sessions/{place.session_id}/card/").status_code == 201
    return town


@settings(
    max_examples=15 * FACTOR,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_tool_shows_or_changes_another_chat(data: st.DataObject, carded: list[Place]) -> None:
    town = carded
    own = data.draw(st.sets(st.sampled_from(range(len(town))), min_size=1, max_size=2), "bound to")
    name = data.draw(st.sampled_from(sorted(TOOLS)), "tool")
    target = town[data.draw(st.sampled_from(range(len(town))), "of")]
    named = data.draw(st.sampled_from([None, *town]), "names")
    rpc = Rpc(make_token(chat_ids=[town[number].chat_id for number in own]))
    strangers = [place for number, place in enumerate(town) if number not in own]
    before = fingerprint(strangers)
    given_arguments = arguments(name, target, named)
    result = rpc.call(name, given_arguments)
    said = everything(result)
    for place in strangers:
        if place.word not in str(given_arguments):
            assert place.word not in said
        assert str(place.chat_id) not in said
        if not result.get("isError"):
            assert place.whatsapp_chat not in said
            assert str(place.session_id) not in said
            assert str(place.memory_id) not in said
    assert fingerprint(strangers) == before
    if target in strangers and name in ("forget", "get_card", "get_memory", "update_memory"):
        assert result["isError"] is True


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_each_tool_answers_within_reach_and_refuses_beyond(name: str, carded: list[Place]) -> None:
    own, other = carded[0], carded[1]
    rpc = Rpc(make_token(chat_ids=[own.chat_id]))
    beyond = rpc.call(name, arguments(name, other, other))
    if name.startswith("list_"):
        assert beyond["structuredContent"]["results"] == []
    else:
        assert beyond["isError"] is True, beyond
    within = rpc.call(name, arguments(name, own, own))
    assert within.get("isError", False) is (name in ("save_document", "load_document")), within


def test_a_context_is_refused_by_the_id_of_another_chats_session_too(carded: list[Place]) -> None:
    own, other = carded[0], carded[1]
    rpc = Rpc(make_token(chat_ids=[own.chat_id]))
    assert rpc.told("get_context", arguments("get_context", own, None))["messages"]
    denied = rpc.refusal("get_context", arguments("get_context", other, None))
    assert denied == f"There is no session {other.session_id}."


def test_an_assistant_of_one_chat_needs_no_name() -> None:
    chat = "15550100123@c.us"
    secret = make_token("read", "write", chat_ids=token_chats([chat]))
    rpc = Rpc(secret)
    made = rpc.call("remember", {"content": "TestCorp pays in 30 days"})["structuredContent"]
    assert (made["whatsapp_chat"], made["visibility"]) == (chat, "chat")
    Api(secret).post("sessions/")
    found = rpc.call("get_context", {"query": "When does TestCorp pay?"})["structuredContent"]
    assert "30 days" in found["messages"][0]["content"]


def test_an_assistant_is_told_its_chats() -> None:
    names = ["15550100123@c.us", "15550100456@c.us"]
    for chosen in (names[:1], names):
        ids = token_chats(chosen)
        said = instructions_for(caller_with(make_token("read", chat_ids=ids)))
        assert all(name in said for name in chosen)
    assert "Your chat" not in instructions_for(caller_with(make_token("read")))
