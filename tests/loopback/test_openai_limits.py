"""What a server says of a prompt that is too long, and how the length of an answer is limited."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from memoryproject.foundation.integrations.context_limit import (
    Overflow,
    SharedContextLimit,
    read_overflow,
)
from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from memoryproject.foundation.integrations.llm.server_traits import Sent, Traits, learned_from
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
        Overflow(6_048, 568, 6_616),
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
    "Gemini, in a list": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1300000) exceeds the maximum number of "
                    "tokens allowed (1048575).",
                }
            }
        ],
        Overflow(1_048_575, 1_300_000),
    ),
    "TGI": (
        422,
        {
            "error": "Input validation error: `inputs` must have less than 1024 tokens. "
            "Given: 1200",
            "error_type": "validation",
        },
        Overflow(1_024, 1_200),
    ),
    "Groq, tokens a minute": (
        413,
        {
            "error": {
                "message": "Request too large for model `x`: tokens per minute (TPM): Limit 6000, "
                "Requested 7000",
                "code": "rate_limit_exceeded",
            }
        },
        Overflow(6_000, 6_950, 7_000),
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


# What each server says of both together: the window, the prompt's tokens, and those of both.
OF_PROMPTS = {
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 125 `inputs` tokens and 8000 "
    "`max_new_tokens`": (4096, 125, None),
    "`inputs` tokens + `max_new_tokens` must be <= 4096": (4096, None, None),
    "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context "
    "length is 4096 tokens and your request has 125 input tokens (8000 > 4096 - 125).": (
        (4096, 125, None)
    ),
    "This model's maximum context length is 8192 tokens. However, you requested 8000 output tokens "
    "and your prompt contains at least 193 input tokens, for a total of at least 8193 tokens.": (
        (8192, None, None)
    ),
    "This model's maximum context length is 8192 tokens. However, you requested 8400 tokens (290 "
    "in the messages, 110 in the functions, and 8000 in the completion).": (8192, 400, 8400),
    "This model's maximum context length is 2048 tokens, however you requested 8290 tokens (290 in "
    "your prompt; 8000 for the completion).": (2048, 290, 8290),
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 8400 "
    "tokens (290 of text input, 110 of tool input, 8000 in the output).": (8192, 400, 8400),
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You "
    "requested a total of 8290 tokens: 290 tokens from the input messages and 8000 tokens for the "
    "completion.": (8192, 290, 8290),
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).": (
        (8192, 9000, None)
    ),
    "input length and `max_tokens` exceed context limit: 290 + 8000 > 8192, decrease input length "
    "or `max_tokens` and try again": (8192, 290, None),
    "Prompt contains 55125 tokens and 0 draft tokens, too large for model with 32768 maximum "
    "context length": (32768, 55125, None),
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.": (
        (131072, 537812, None)
    ),
    "Your request exceeded model token limit: 8192 (requested: 8290)": (8192, None, 8290),
    "prompt token count of 5000 exceeds the limit of 4096": (4096, 5000, None),
    "Range of input length should be [1,30720]": (30720, None, None),
    "The prompt is too long: 9000, model maximum context length: 8192": (8192, 9000, None),
    "Requested tokens (4476) exceed context window of 4096": (4096, 4476, None),
    "the sum of prompt tokens and max_tokens must not exceed 4096": (4096, None, None),
    "Input is too long for requested model.": (None, None, None),
    "invalid params, context window exceeds limit": (None, None, None),
    "Prompt exceeds max length": (None, None, None),
}
# What each says of the answer alone; None where it says something else.
OF_ANSWERS = {
    "max_tokens is too large: 8000. This model supports at most 4,096 completion tokens": 4096,
    "`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less "
    "than the `context_window` for this model": 4096,
    "max_tokens for `llama-3.1-8b-instant` must be less than or equal to 4000": 4000,
    "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]": 4096,
    "max_tokens参数非法：限制数值范围[1,4095]": 4095,
    "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for x-3": 4096,
    "it has a maxOutputTokens value of 8000 but the supported range is from 1 (inclusive) to 4097 "
    "(exclusive)": 4096,
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum "
    "tokens value that is lower than 4096.": 4096,
    "max_tokens (8000) exceeds model's maximum output tokens (4096) for model kimi-k3": 4096,
    "too many tokens: max tokens must be less than or equal to 4096, the maximum output": 4096,
    "body.max_tokens Input should be less than or equal to 4096": 4096,
    "Input validation error: `max_new_tokens` must be <= 512. Given: 8000": 512,
    "max_tokens must be between 0 and 4096, got 8000": 4096,
    "max_tokens=8000 cannot be greater than max_model_len=max_total_tokens=4096.": 4096,
    "max_tokens must be at least 1, got -5.": None,
    "max_tokens must be greater than or equal to 16": None,
    "max_tokens must be greater than thinking.budget_tokens (1024)": None,
    "max_tokens is deprecated. top_k must be at most 100": None,
    "max_tokens above 4096 requires a stream of at most 60 minutes": None,
    "n must be at most 128 when max_tokens is set": None,
    "Unsupported parameter: max_tokens (API 2024-10-21)": None,
}


@pytest.mark.parametrize("words", OF_PROMPTS)
def test_the_numbers_of_a_prompt_that_is_too_long_are_read(words: str) -> None:
    assert read_overflow(400, {"message": words}) == Overflow(*OF_PROMPTS[words])


@pytest.mark.parametrize("words", OF_ANSWERS)
def test_a_limit_of_answers_is_learned_from_what_says_it_alone(words: str) -> None:
    assert read_overflow(400, {"message": words}) is None
    learned = learned_from(words, Sent(reply_tokens=8000), Traits(), [Traits()])
    assert (learned or Traits()).most_reply_tokens == OF_ANSWERS[words]


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
