"""Which token may use which tool: the same as over REST."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from memoryproject.foundation.rest_kit.models import SCOPES, CallCount
from sessions_app.mcp.tools import TOOLS
from sessions_app.models import Chat
from tests.api.calling import make_token
from tests.api.routes import NOT_FOR_BOUND
from tests.api.test_scopes import ROUTES
from tests.mcp.rpc import Rpc

pytestmark = pytest.mark.django_db

SCOPE_OF = {
    "remember": "write",
    "recall": "read",
    "forget": "forget",
    "get_context": "read",
    "list_sessions": "read",
    "get_card": "read",
    "save_document": "write",
    "load_document": "read",
}
REFUSED_TO_BOUND = {"save_document", "load_document"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "remember": {"content": "TestCorp pays in 30 days"},
    "recall": {"query": "When does TestCorp pay?"},
    "forget": {"memory_id": str(uuid4())},
    "get_context": {"session_id": str(uuid4())},
    "list_sessions": {},
    "get_card": {"session_id": str(uuid4())},
    "save_document": {"category": "decisions", "identifier": "one", "content": {}},
    "load_document": {"category": "decisions", "identifier": "none"},
}


def test_the_table_has_every_tool() -> None:
    assert set(TOOLS) == set(SCOPE_OF) == set(ARGUMENTS)
    bound = {name for name, (_, view) in ROUTES.items() if name in NOT_FOR_BOUND and view}
    assert bound == NOT_FOR_BOUND


@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_lists_the_tools_of_its_scopes(scope: str) -> None:
    assert Rpc(make_token(scope)).listed() == {
        name for name, own in SCOPE_OF.items() if own == scope
    }


@pytest.mark.parametrize("name", SCOPE_OF)
def test_a_tool_that_is_out_of_scope_says_which_scope_it_needs(name: str) -> None:
    needed = SCOPE_OF[name]
    others = [scope for scope in SCOPES if scope != needed]
    denied = Rpc(make_token(*others)).refusal(name, ARGUMENTS[name])
    assert denied == f"The token lacks the scope {needed}."
    result = Rpc(make_token(needed)).call(name, ARGUMENTS[name])
    assert "lacks the scope" not in result["content"][0]["text"]


def test_what_concerns_all_chats_is_not_for_bound_tokens() -> None:
    chat = Chat.objects.create(whatsapp_chat="15550100123@c.us", provider="console")
    bound = Rpc(make_token(chat_ids=[chat.pk]))
    assert bound.listed() == set(SCOPE_OF) - REFUSED_TO_BOUND
    for name in REFUSED_TO_BOUND:
        denied = bound.refusal(name, ARGUMENTS[name])
        assert denied == "The token is bound to chats, and this concerns all of them."


def test_calls_are_counted_and_throttled_as_those_of_rest(settings: Any) -> None:
    # So low that each call is written at once.
    settings.API_RATE_READ, settings.API_RATE_WRITE = 3, 10
    rpc = Rpc(make_token())
    for _ in range(3):
        rpc.told("list_sessions")
    # A minute of the clock may have ended in between: then three more are free.
    results = [rpc.call("list_sessions") for _ in range(4)]
    refused = next(result for result in results if result.get("isError"))
    assert "throttled" in refused["content"][0]["text"]
    assert rpc.told("remember", ARGUMENTS["remember"])
    assert set(CallCount.objects.values_list("kind", flat=True)) == {"read", "write"}


@pytest.mark.parametrize("word", ["Bearer", "Token", "bearer", "TOKEN"])
def test_both_words_before_a_token_are_understood(word: str) -> None:
    assert Rpc(make_token(), word).listed() == set(SCOPE_OF)


@pytest.mark.parametrize("secret", [None, "mem_wrong", "", "two words"])
def test_without_a_known_token_it_is_401_and_says_how(secret: str | None, db: None) -> None:
    for method in ("initialize", "tools/list", "tools/call"):
        answer = Rpc(secret).post({"jsonrpc": "2.0", "id": 1, "method": method})
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"
        error = answer.json()["error"]
        assert (answer.json()["id"], error["code"]) == (None, -32600)
        assert error["message"]


def test_staff_of_the_admin_are_nobody_here(admin_client: Any) -> None:
    rpc = Rpc(None)
    rpc.api.client = admin_client
    assert rpc.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status_code == 401
