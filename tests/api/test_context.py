"""What a model would be sent, for models of others."""

from __future__ import annotations

from typing import Any

import pytest

from memoryproject.foundation.text.characters import estimate_tokens
from sessions_app.models import ChatSession, Message, Turn
from tests.api.calling import Api, error_of
from tests.api.test_chat import say
from tests.api.test_sessions import opened

pytestmark = pytest.mark.django_db


def context(api: Api, session_id: str, **body: Any) -> Any:
    answer = api.post(f"sessions/{session_id}/context/", body)
    assert answer.status_code == 200, answer.content
    document = answer.json()
    assert set(document) == {"messages", "memories", "total_tokens", "left_out"}
    texts = [message["content"] for message in document["messages"]]
    assert document["total_tokens"] == sum(estimate_tokens(text) for text in texts)
    return document


def test_it_is_what_the_assistants_own_model_is_sent(api: Api) -> None:
    say(api, "/remember TestCorp pays in 30 days")
    session_id = say(api, "hello")["session_id"]
    found = context(api, session_id, query="When does TestCorp pay?")
    said = say(api, "When does TestCorp pay?")
    replay = api.get(f"turns/{said['turn_id']}/").json()
    assert found["messages"][1:] == replay["prompt"][1:]
    assert [memory["content"] for memory in found["memories"]] == ["TestCorp pays in 30 days"]
    assert "TestCorp pays in 30 days" in found["messages"][0]["content"]


def test_nothing_is_stored_and_the_question_stands_there_once(api: Api) -> None:
    session_id = opened(api)["session_id"]
    body = {"messages": [{"role": "user", "content": "When do you open?"}]}
    api.post(f"sessions/{session_id}/messages/", body)
    without = context(api, session_id)
    same = context(api, session_id, query="When do you open?")
    assert without["messages"][1:] == same["messages"][1:]
    assert len(same["messages"]) == 2
    another = context(api, session_id, query="And when do you close?")
    assert [message["content"] for message in another["messages"][1:]] == [
        "When do you open?",
        "And when do you close?",
    ]
    assert (Message.objects.count(), Turn.objects.count()) == (1, 0)
    assert ChatSession.objects.get().message_counter == 1


def test_an_empty_session_has_a_context_and_recalls(api: Api) -> None:
    say(api, "/remember TestCorp pays in 30 days")
    session_id = api.post(f"sessions/{opened(api)['session_id']}/reset/").json()["session_id"]
    assert [message["role"] for message in context(api, session_id)["messages"]] == ["system"]
    found = context(api, session_id, query="When does TestCorp pay?")
    assert [message["role"] for message in found["messages"]] == ["system", "user"]
    assert found["memories"]


@pytest.mark.parametrize("max_tokens", [200, 400, 800, 1300])
def test_the_token_budget_is_kept_exactly(api: Api, max_tokens: int) -> None:
    session_id = opened(api)["session_id"]
    messages = [
        {"role": "user" if number % 2 else "assistant", "content": f"number {number} " * 30}
        for number in range(20)
    ]
    api.post(f"sessions/{session_id}/messages/", {"messages": messages})
    found = context(api, session_id, query="what now?", max_tokens=max_tokens)
    assert found["total_tokens"] <= max_tokens
    assert found["messages"][-1] == {"role": "user", "content": "what now?"}
    left = 20 - (len(found["messages"]) - 2)
    assert left > 0
    # As much as fits is there: one message more wouldn't.
    size = max(estimate_tokens(message["content"]) for message in messages)
    assert found["total_tokens"] > max_tokens - 2 * size - 20


def test_a_budget_that_can_not_be_kept_says_what_would_do(api: Api) -> None:
    session_id = opened(api)["session_id"]
    error = error_of(
        api.post(f"sessions/{session_id}/context/", {"query": "hello", "max_tokens": 3}), 400
    )
    assert error["attr"] == "max_tokens"
    least = int(error["detail"].rstrip(".").split()[-1])
    assert context(api, session_id, query="hello", max_tokens=least)["total_tokens"] == least
    error_of(
        api.post(f"sessions/{session_id}/context/", {"query": "hello", "max_tokens": least - 1}),
        400,
    )
