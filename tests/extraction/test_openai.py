"""Learning through HTTP: the form is asked for as well as the server can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from memoryproject.foundation.integrations.llm.base import (
    AnswerSchema,
    ChatMessage,
    ChatModelError,
    ChatRequest,
)
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from tests.extraction.learning import Learning, work
from tests.loopback.openai_behaviours import fails, says
from tests.loopback.openai_server import OpenAIServer
from tests.world import CLIENT

REQUEST = ChatRequest(
    [ChatMessage("user", "Answer in JSON")], answer_schema=AnswerSchema("word", {"type": "object"})
)
REFUSED = fails(400, "response_format is not supported")


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(server: OpenAIServer) -> Iterator[OpenAIChatModel]:
    made = OpenAIChatModel("", server.base_url, "gpt-4o-mini", sleep=lambda _: None)
    with closing(made):
        yield made


def forms(server: OpenAIServer) -> list[str]:
    return [body.get("response_format", {}).get("type", "") for body in server.chat_bodies]


def test_without_a_form_none_is_asked(server: OpenAIServer, model: OpenAIChatModel) -> None:
    model.complete(ChatRequest([ChatMessage("user", "Hello")]))
    assert "response_format" not in server.chat_bodies[0]


def test_the_schema_is_asked_for_strictly(server: OpenAIServer, model: OpenAIChatModel) -> None:
    server.script_chat(says("{}"))
    assert model.complete(REQUEST).text == "{}"
    assert server.chat_bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "word", "schema": {"type": "object"}, "strict": True},
    }


def test_without_schemas_an_object_is_asked(server: OpenAIServer, model: OpenAIChatModel) -> None:
    server.script_chat(REFUSED, says("{}"), says("{}"))
    assert model.complete(REQUEST).text == "{}"
    model.complete(REQUEST)
    assert forms(server) == ["json_schema", "json_object", "json_object"], "it is remembered"


def test_without_forms_the_prompt_asks(server: OpenAIServer, model: OpenAIChatModel) -> None:
    server.script_chat(REFUSED, fails(422, "unknown field"), says("{}"))
    assert model.complete(REQUEST).text == "{}"
    assert forms(server) == ["json_schema", "json_object", ""]


def test_wrong_in_any_form_is_an_error(server: OpenAIServer, model: OpenAIChatModel) -> None:
    server.script_chat(REFUSED, REFUSED, fails(400, "no such thing"), says("{}"))
    with pytest.raises(ChatModelError, match="no such thing"):
        model.complete(REQUEST)
    model.complete(REQUEST)
    assert forms(server)[-1] == "json_schema", "nothing was learned about the server"


@pytest.mark.parametrize(
    "failure", [fails(401, "bad key"), fails(400, "too long", code="context_length_exceeded")]
)
def test_other_failures(server: OpenAIServer, model: OpenAIChatModel, failure: object) -> None:
    server.script_chat(failure)  # type: ignore[arg-type]
    with pytest.raises(ChatModelError):
        model.complete(REQUEST)
    assert len(server.chat_bodies) == 1


def test_a_refusal_in_words_is_no_form(
    learning: Learning, server: OpenAIServer, model: OpenAIChatModel
) -> None:
    learning.with_extractor(chat_model=model)
    server.script_chat(says("I'm sorry, I can't help with that."))
    learning.world.say(CLIENT, "I own a boat")
    assert learning.learn() == 0
    assert work().due
