"""The chat model that says what it is told to."""

from __future__ import annotations

import pytest

from memoryproject.foundation.integrations.llm.base import (
    ChatMessage,
    ChatModelError,
    ChatRequest,
    Completion,
)
from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel


def request(text: str) -> ChatRequest:
    return ChatRequest(messages=[ChatMessage("user", text)])


def test_a_list_is_answered_in_order_and_requests_are_kept() -> None:
    ready = Completion(text="ready", model="other", attempts=3)
    model = ScriptedChatModel(["first", ready])
    first, second = request("one two"), request("three")
    assert model.complete(first) == Completion(
        text="first", model="scripted", prompt_tokens=2, completion_tokens=1
    )
    assert model.complete(second) == ready
    assert model.requests == [first, second]


def test_a_function_sees_the_request() -> None:
    model = ScriptedChatModel(lambda asked: asked.messages[-1].content.upper(), name="loud")
    completion = model.complete(request("hello"))
    assert (completion.text, completion.model) == ("HELLO", "loud")


def test_exceptions_in_a_list_are_raised_and_the_script_goes_on() -> None:
    model = ScriptedChatModel([ChatModelError("down", permanent=True), "back"])
    with pytest.raises(ChatModelError, match="down") as caught:
        model.complete(request("a"))
    assert caught.value.permanent
    assert model.complete(request("b")).text == "back"


def test_a_script_that_is_over_is_no_model_failure() -> None:
    model = ScriptedChatModel([])
    with pytest.raises(LookupError, match="no answer left"):
        model.complete(request("a"))


def test_before_attempt_may_stop_the_call() -> None:
    model = ScriptedChatModel(["never said"])

    def lost() -> None:
        raise TimeoutError("lease lost")

    with pytest.raises(TimeoutError, match="lease lost"):
        model.complete(request("a"), before_attempt=lost)
    assert model.requests == []
