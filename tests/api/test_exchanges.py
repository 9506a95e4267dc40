"""Messages and answers of another program: stored as turns, and learned from on request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from django_q.models import OrmQ

from memories_app.models import Memory
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.extraction.extract import Extractor, chat_learn
from sessions_app.models import ChatSession, ExtractionWork, Turn
from sessions_app.rules import chats_due
from sessions_app.turns.dependencies import build_turn_dependencies
from tests.api.calling import Api, error_of
from tests.api.test_context_form import context
from tests.api.test_sessions import opened
from tests.extraction.learning import fact
from tests.sessions.test_rules import earlier, rule

pytestmark = pytest.mark.django_db

VEGAN = "I'm vegan, and my locker is 17"


@pytest.fixture
def learns(settings: Any) -> None:
    settings.EXTRACT_MEMORIES = True
    settings.CHAT_MODEL = "openai"


@pytest.fixture
def post(
    api: Api, django_capture_on_commit_callbacks: Callable[..., Any]
) -> Callable[..., tuple[str, Any]]:
    """Posts to a new session; returns its id and the answer."""

    def send(what: str, body: dict[str, Any], session_id: str = "") -> tuple[str, Any]:
        session_id = session_id or opened(api)["session_id"]
        with django_capture_on_commit_callbacks(execute=True):
            return session_id, api.post(f"sessions/{session_id}/{what}/", body)

    return send


def jobs() -> list[str]:
    """The jobs of learning that wait."""
    names = [job.task["func"] for job in OrmQ.objects.all()]
    return [name for name in names if name.endswith(".learn_from_chat")]


def learn(session_id: str, *facts: dict[str, Any]) -> list[str]:
    """What the worker does, with a model that finds these facts in the first turn."""
    assert len(jobs()) == 1
    lessons = [json.dumps({"facts": list(facts)}), *['{"facts": []}'] * 9]
    chat_id = ChatSession.objects.get(pk=session_id).chat_id
    embedder = build_turn_dependencies().embedder
    chat_learn(
        chat_id=chat_id,
        extractor=Extractor(chat_model=ScriptedChatModel(lessons), embedder=embedder),
    )
    return list(Memory.objects.values_list("content", flat=True))


def test_an_exchange_is_a_turn_of_staffs_and_the_history(api: Api, post: Any) -> None:
    session_id, answer = post("exchanges", {"query": VEGAN, "reply": "Noted", "model": "mine"})
    assert answer.status_code == 201, answer.content
    found = answer.json()
    assert [each["content"] for each in found["messages"]] == [VEGAN, "Noted"]
    assert [each["role"] for each in found["messages"]] == ["user", "assistant"]
    assert found["learning"] == "off"
    turn = api.get(f"turns/{found['turn_id']}/").json()
    assert (turn["state"], turn["outcome"], turn["model"]) == ("sent", "answered", "mine")
    assert turn["message_id"] == found["messages"][0]["message_id"]
    assert turn["reply_message_id"] == found["messages"][1]["message_id"]
    said = context(api, session_id, query="And then?")["messages"][1:]
    assert [each["content"] for each in said] == [VEGAN, "Noted", "And then?"]


@pytest.mark.usefixtures("learns")
def test_what_the_person_says_is_learned(post: Any) -> None:
    session_id, answer = post("exchanges", {"query": VEGAN, "reply": "Noted", "learn": True})
    assert answer.json()["learning"] == "queued"
    assert learn(session_id, fact("I'm vegan")) == ["I'm vegan"]
    memory = Memory.objects.get()
    assert str(memory.source_message_id) == answer.json()["messages"][0]["message_id"]


@pytest.mark.usefixtures("learns")
def test_messages_are_learned_from_each_by_itself(post: Any) -> None:
    said = [
        {"role": "user", "content": VEGAN},
        {"role": "assistant", "content": "I'm a bot"},
        {"role": "user", "content": "and I live in Haifa"},
        {"role": "tool", "tool_call_id": "c", "content": "I'm a tool"},
    ]
    session_id, answer = post("messages", {"messages": said, "learn": True})
    assert answer.json()["learning"] == "queued"
    assert ExtractionWork.objects.count() == 2
    assert learn(session_id, fact("I'm vegan")) == ["I'm vegan"]
    assert set(Turn.objects.values_list("state", flat=True)) == {"cancelled"}


@pytest.mark.parametrize(
    ("body", "learning"),
    [
        ({"messages": [{"role": "user", "content": VEGAN}]}, "off"),
        ({"messages": [{"role": "user", "content": VEGAN}], "learn": False}, "off"),
        ({"messages": [{"role": "assistant", "content": VEGAN}], "learn": True}, "nothing"),
    ],
)
@pytest.mark.usefixtures("learns")
def test_nothing_else_is_learned_from(post: Any, body: dict[str, Any], learning: str) -> None:
    _, answer = post("messages", body)
    assert (answer.status_code, answer.json()["learning"]) == (201, learning)
    assert jobs() == []
    assert not ExtractionWork.objects.exists()


def test_where_nothing_is_learned_the_answer_says_so(post: Any) -> None:
    _, answer = post("exchanges", {"query": VEGAN, "reply": "Noted", "learn": True})
    assert (answer.status_code, answer.json()["learning"]) == (201, "off")


@pytest.mark.parametrize(
    "body",
    [
        {"query": VEGAN},
        {"query": None, "reply": "x"},
        {"query": VEGAN, "reply": [{"type": "hologram"}]},
        {"query": VEGAN, "reply": "x", "learn": "yes"},
        {"query": VEGAN, "reply": "x", "persona": True},
    ],
)
def test_a_wrong_exchange_stores_nothing(api: Api, post: Any, body: dict[str, Any]) -> None:
    session_id, answer = post("exchanges", body)
    error_of(answer, 400)
    assert api.get(f"sessions/{session_id}/messages/").json()["results"] == []


def test_it_is_stored_once_for_a_key(api: Api) -> None:
    session_id = opened(api)["session_id"]
    body = {"query": VEGAN, "reply": "Noted"}
    for _ in range(2):
        answer = api.post(f"sessions/{session_id}/exchanges/", body, Idempotency_Key="k")
        assert answer.status_code == 201
    assert Turn.objects.count() == 1


USER, ANSWER = {"role": "user", "content": VEGAN}, {"role": "assistant", "content": "Noted"}


@pytest.mark.parametrize(
    ("what", "body", "waits"),
    [
        ("exchanges", {"query": VEGAN, "reply": "Noted"}, False),
        ("messages", {"messages": [USER, ANSWER]}, False),
        ("messages", {"messages": [USER, USER, ANSWER]}, False),
        ("messages", {"messages": [USER, ANSWER, USER]}, True),
        ("messages", {"messages": [ANSWER, USER]}, True),
    ],
)
def test_what_one_call_stored_answered_waits_for_no_answer(
    api: Api, post: Any, what: str, body: dict[str, Any], waits: bool
) -> None:
    """For the rules of staff."""
    rule(when="silence", minutes=30, due_minutes=5)
    session_id, _ = post("messages", {"messages": [USER] if waits else [USER, ANSWER]})
    post(what, body, session_id)
    earlier(31)
    assert len(chats_due(timezone.now())) == waits
