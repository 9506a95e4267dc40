"""What a server says of a prompt that is too long, and how the length of an answer is limited."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from memoryproject.foundation.integrations.context_limit import Overflow, SharedContextLimit
from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from tests.loopback.conftest import KEY
from tests.loopback.openai_behaviours import Behaviour, fails, raw, says
from tests.loopback.openai_server import OpenAIServer
from tests.world import GODFATHER, World, message_from

MESSAGES = [ChatMessage("user", "hello")]
LIMITED = ChatRequest(messages=MESSAGES, max_reply_tokens=50)

VLLM = (
    "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens "
    "(568 in the messages, 6048 in the completion). Please reduce the length of the messages or "
    "completion."
)
LM_STUDIO = (
    "The number of tokens to keep from the initial prompt is greater than the context length "
    "(n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide "
    "a shorter input."
)


def answers(status: int, body: Any) -> Behaviour:
    content = json.dumps(body).encode()
    return Behaviour(status=status, raw=content)


# What servers really answer: see the issues of these projects.
REFUSALS = {
    "OpenAI": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your "
                "messages resulted in 134521 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        Overflow(128_000, 134_521),
    ),
    "vLLM": (
        400,
        {"object": "error", "message": VLLM, "type": "BadRequestError", "code": 400},
        Overflow(6_048, 568),
    ),
    "vLLM, room of the answer": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 2048 tokens. However, your "
                "request has 8 input tokens plus 2045 'max_tokens'. Please reduce one or the other."
            }
        },
        Overflow(2_048, 8),
    ),
    "vLLM, engine": (
        400,
        {
            "error": {
                "message": "The decoder prompt (length 21535) is longer than the maximum model "
                "length of 16384."
            }
        },
        Overflow(16_384, 21_535),
    ),
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (4476 tokens) exceeds the available context size (4096 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 4_476,
                "n_ctx": 4_096,
            }
        },
        Overflow(4_096, 4_476),
    ),
    "LM Studio": (400, {"error": LM_STUDIO}, Overflow(4_096, 13_055)),
    "LM Studio, earlier": (
        400,
        {
            "error": "Trying to keep the first 111490 tokens when context the overflows. However, "
            "the model is loaded with context length of only 32768 tokens, which is not enough."
        },
        Overflow(32_768, 111_490),
    ),
    "LM Studio, status 200": (200, {"error": {"message": LM_STUDIO}}, Overflow(4_096, 13_055)),
    "Ollama": (
        400,
        {"error": {"message": "prompt too long; exceeded max context length by 904 tokens"}},
        Overflow(),
    ),
    "Ollama, its own fault": (
        500,
        {"error": {"message": "the input length exceeds the context length"}},
        Overflow(),
    ),
    "numbers with commas": (
        400,
        {"error": {"message": "prompt is too long: 5,100 tokens > 4,096 maximum"}},
        Overflow(4_096, 5_100),
    ),
    "a proxy": (413, {"message": "Payload Too Large"}, Overflow()),
}


@pytest.mark.parametrize("name", sorted(REFUSALS))
def test_a_prompt_that_is_too_long_is_told_as_such(
    server: OpenAIServer, chat_model: OpenAIChatModel, waits: list[float], name: str
) -> None:
    status, body, expected = REFUSALS[name]
    server.script_chat(answers(status, body))
    with pytest.raises(ChatModelError) as caught:
        chat_model.complete(LIMITED)
    assert caught.value.overflow == expected
    # The same prompt is not sent again.
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize(
    "failure",
    [
        fails(400, "Invalid value"),
        fails(401, "Incorrect API key provided"),
        fails(429, "Request too large for gpt-4o: Limit 30000, Requested 31000"),
        answers(400, {"error": 5}),
        answers(400, ["error"]),
        answers(400, {"error": {"message": ["context length"], "n_ctx": "many"}}),
    ],
)
def test_other_refusals_are_not_taken_for_it(
    server: OpenAIServer, chat_model: OpenAIChatModel, failure: Behaviour
) -> None:
    server.script_chat(*[failure] * 4)
    with pytest.raises(ChatModelError) as caught:
        chat_model.complete(ChatRequest(messages=MESSAGES))
    assert caught.value.overflow is None


def limits(server: OpenAIServer) -> list[dict[str, int]]:
    names = ("max_completion_tokens", "max_tokens")
    return [{name: body[name] for name in names if name in body} for body in server.chat_bodies]


def test_the_length_of_an_answer_is_limited(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    chat_model.complete(LIMITED)
    chat_model.complete(ChatRequest(messages=MESSAGES))
    assert limits(server) == [{"max_completion_tokens": 50}, {}]


def test_a_server_that_refuses_the_parameter_gets_the_older_one_and_that_is_remembered(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    extra = "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens')}]"
    server.script_chat(fails(400, extra))
    for _ in range(2):
        assert chat_model.complete(LIMITED).attempts == 1
    assert limits(server) == [{"max_completion_tokens": 50}, {"max_tokens": 50}, {"max_tokens": 50}]


def test_a_server_that_refuses_both_gets_none(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    server.script_chat(fails(422, "unknown field"), fails(422, "unknown field"))
    for _ in range(2):
        chat_model.complete(LIMITED)
    assert limits(server) == [{"max_completion_tokens": 50}, {"max_tokens": 50}, {}, {}]


def test_a_refusal_for_another_reason_is_told_and_not_remembered(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    server.script_chat(fails(400, "The model doesn't exist"))
    with pytest.raises(ChatModelError, match="The model doesn't exist"):
        chat_model.complete(LIMITED)
    chat_model.complete(LIMITED)
    assert limits(server) == [{"max_completion_tokens": 50}] * 2


def test_a_model_that_thinks_gets_room_to_answer(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    """Its thoughts count as the answer's tokens; at first they take all of them."""
    server.script_chat(says("", finish_reason="length"), says("at last"))
    assert chat_model.complete(LIMITED).text == "at last"
    chat_model.complete(LIMITED)
    rooms = [body["max_completion_tokens"] for body in server.chat_bodies]
    assert rooms == [50, 400, 400]


def test_a_model_that_only_thinks_fails(server: OpenAIServer, waits: list[float]) -> None:
    server.script_chat(*[says("", finish_reason="length")] * 5)
    model = OpenAIChatModel(KEY, server.base_url, "m", sleep=waits.append)
    with closing(model), pytest.raises(ChatModelError, match="only thought|ended before"):
        model.complete(LIMITED)
    assert len(server.requests) == 5


def test_an_answer_with_words_that_are_like_a_refusal_is_an_answer(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    server.script_chat(says("The context length is 4096."))
    assert chat_model.complete(LIMITED).text == "The context length is 4096."
    server.script_chat(raw(b'{"error": null, "choices": []}'), says("good"))
    assert chat_model.complete(LIMITED).text == "good"


@pytest.mark.django_db
def test_an_answer_over_http_comes_after_one_refusal(
    server: OpenAIServer, chat_model: OpenAIChatModel, world: World, waits: list[float]
) -> None:
    """The server's numbers are used: the second prompt fits, and so does each one after it."""
    limit = SharedContextLimit(base_url=server.base_url, model="gpt-4o-mini")
    world.use(chat_model=chat_model, context_limit=limit)
    world.with_answer_rules(max_reply_tokens=200)
    world.with_rules(pause_after_reply=timedelta(0))
    for number in range(40):
        text = f"Line {number}: " + "nothing else happened on that day. " * 20
        world.receive(message_from(GODFATHER, text, from_business=True))
    server.script_chat(
        fails(
            400,
            "This model's maximum context length is 4096 tokens. However, your messages resulted "
            "in 7200 tokens.",
            code="context_length_exceeded",
        )
    )
    (reply,) = world.say(GODFATHER, "And now?")
    assert reply.startswith("You said: And now?")
    (again,) = world.say(GODFATHER, "And then?")
    assert again.startswith("You said: And then?")
    refused, *read = [
        sum(len(message["content"]) // 4 for message in body["messages"])
        for body in server.chat_bodies
    ]
    assert len(read) == 2
    # 4,096 less the answer's 200, by the server's count, with a margin.
    assert max(read) <= refused * 3_896 / 7_200
    assert min(read) > refused * 3_896 / 7_200 * 0.85
    assert {body["max_completion_tokens"] for body in server.chat_bodies} == {200}
    assert waits == []
