"""A context for an assistant of the caller's own."""

from __future__ import annotations

from typing import Any

import pytest

from memoryproject.foundation.integrations.llm.base import message_tokens
from tests.api.calling import Api, error_of
from tests.api.test_context_form import ANSWERS, ASKS, CALLS, RESULT, context, session_with

pytestmark = pytest.mark.django_db

OWN = "You are BakeryBot. Answer in rhymes."


def remember(api: Api, *texts: str) -> None:
    for text in texts:
        body = {"content": text, "whatsapp_chat": "15550100123@c.us", "visibility": "chat"}
        assert api.post("memories/", body).status_code in (200, 201)


def system(api: Api, session_id: str, **body: Any) -> str:
    text: str = context(api, session_id, **body)["messages"][0]["content"]
    return text


def test_without_persona_the_memories_stay_and_our_assistant_goes(api: Api) -> None:
    session_id = session_with(api, ASKS)
    remember(api, "TestCorp pays in 30 days")
    asked = {"query": "When does TestCorp pay?", "system": OWN}
    ours = system(api, session_id, **asked)
    assert ours.startswith(f"{OWN}\n\nYou are DeniDin")
    theirs = system(api, session_id, **asked, persona=False)
    assert theirs.startswith(f"{OWN}\n\nIt is ")
    assert "TestCorp pays in 30 days" in theirs
    for word in ("DeniDin", "WhatsApp", "Answer briefly", "you speak"):
        assert word in ours
        assert word not in theirs


def test_strict_roles_alternate_after_one_system_message(api: Api) -> None:
    said: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Good morning"},
        {"role": "user", "content": "Hi", "name": "דנה Cohen"},
        {"role": "user", "content": "Are you there?"},
        {"role": "system", "content": "The shop opened"},
        *(ASKS, CALLS, RESULT, ANSWERS),
    ]
    session_id = session_with(api, *said)
    for body in ({}, {"query": "Thanks"}, {"query": "Thanks", "max_tokens": 400}):
        found = context(api, session_id, **body, roles="strict")["messages"]
        roles = [each["role"] for each in found]
        assert roles[0] == "system"
        assert all(each == ("user", "assistant")[place % 2] for place, each in enumerate(roles[1:]))
        assert {frozenset(each) for each in found} == {frozenset({"role", "content"})}
    assert "Are you there?" in found[-1]["content"] or "Thanks" in found[-1]["content"]


@pytest.mark.parametrize(
    "said",
    [
        [{"role": "user", "content": "Hi"}, {"role": "user", "content": "And?", "name": "יוסי"}],
        [ASKS, CALLS, RESULT],
    ],
)
def test_strict_roles_stay_within_the_least_that_they_need(
    api: Api, said: list[dict[str, Any]]
) -> None:
    path = f"sessions/{session_with(api, *said)}/context/"
    refusal = error_of(api.post(path, {"roles": "strict", "max_tokens": 1}), 400)
    least = int(refusal["detail"].rpartition(" ")[2].rstrip("."))
    error_of(api.post(path, {"roles": "strict", "max_tokens": least - 1}), 400)
    found = api.post(path, {"roles": "strict", "max_tokens": least}).json()
    assert found["total_tokens"] <= least


def test_each_part_has_a_limit_of_its_own(api: Api) -> None:
    said = [
        {"role": role, "content": f"{role} {number} about the invoice " + "word " * 20}
        for number in range(20)
        for role in ("user", "assistant")
    ]
    session_id = session_with(api, *said)
    remember(api, *(f"The invoice of month {number} was paid late by Dana" for number in range(5)))
    asked = {"query": "Which invoice was paid late by Dana?"}
    whole = context(api, session_id, **asked)
    assert len(whole["messages"]) > 12
    assert whole["memories"]
    bare = context(api, session_id, **asked, max_tokens={"memories": 0})
    assert bare["memories"] == []
    assert bare["left_out"]["recalled"] == len(whole["memories"])
    for most in (0, 1, 100, 300):
        short = context(api, session_id, **asked, max_tokens={"history": most})
        between = short["messages"][1:-1]
        assert sum(message_tokens(each["content"]) for each in between) <= most
        assert short["messages"][-1]["content"] == asked["query"]
        assert len(short["memories"]) == len(whole["memories"])
    both = context(api, session_id, **asked, max_tokens={"total": 700, "history": 100})
    assert both["total_tokens"] <= 700


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", True),
        ("max_tokens", "9"),
        ("max_tokens", {"all": 9}),
        ("max_tokens", {"total": 0}),
        ("max_tokens", {"memories": None}),
        ("max_tokens", [9]),
        ("roles", "gemma"),
        ("persona", "no"),
        ("system", None),
        ("system", ["x"]),
    ],
)
def test_a_wrong_form_is_refused(api: Api, field: str, value: Any) -> None:
    answer = api.post(f"sessions/{session_with(api, ASKS)}/context/", {field: value})
    assert error_of(answer, 400)["attr"] == field
