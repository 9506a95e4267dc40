"""The OpenAI chat model, through HTTP, against a server that misbehaves on demand."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from memoryproject.foundation.integrations.embedders.openai_embedder import OpenAIEmbedder
from memoryproject.foundation.integrations.llm.base import (
    ChatMessage,
    ChatModelError,
    ChatRequest,
    Picture,
)
from memoryproject.foundation.integrations.llm.openai_chat import ROOM_TO_THINK, OpenAIChatModel
from memoryproject.foundation.integrations.openai_transcriber import OpenAITranscriber
from tests.loopback.conftest import KEY
from tests.loopback.openai_behaviours import (
    Behaviour,
    Json,
    changed,
    fails,
    hangs_up,
    quota_exceeded,
    rate_limited,
    raw,
    says,
    slow,
)
from tests.loopback.openai_server import OpenAIServer

REQUEST = ChatRequest(
    messages=[
        ChatMessage("system", "You help.\n<memories>\n- a\n- b\n</memories>"),
        ChatMessage("user", "שלום, what is new?"),
    ]
)


def without(*names: str) -> Behaviour:
    return changed(lambda body: {name: body[name] for name in body if name not in names})


def with_choices(choices: object) -> Behaviour:
    def change(body: Json) -> Json:
        return {**body, "choices": choices}

    return changed(change)


def test_an_answer_with_its_model_and_tokens(
    server: OpenAIServer, chat_model: OpenAIChatModel, waits: list[float]
) -> None:
    completion = chat_model.complete(REQUEST)
    assert completion.text == "You said: שלום, what is new?\nMemories I saw: 2"
    assert completion.model == "gpt-4o-mini-loopback"
    assert (completion.prompt_tokens, completion.completion_tokens) == (24, 12)
    assert completion.attempts == 1
    assert server.chat_bodies == [
        {"model": "gpt-4o-mini", "messages": [message.as_dict() for message in REQUEST.messages]}
    ]
    assert waits == []


@pytest.mark.parametrize(
    "failure",
    [
        fails(500),
        fails(503),
        fails(408),
        fails(409),
        rate_limited(),
        hangs_up(),
        raw(b"{", headers={}),
        raw(b"<html>down for maintenance</html>", headers={"Content-Type": "text/html"}),
        raw(b'{"id": ', headers={"Content-Length": "500"}),
        raw(b"null"),
        raw(b'"text"'),
        raw(b"[]"),
        raw(b"{}"),
        with_choices([]),
        with_choices(None),
        with_choices({"index": 0}),
        with_choices(["text"]),
        with_choices([{"message": None}]),
        with_choices([{"message": {"role": "assistant", "content": {"a": 1}}}]),
        says(""),
        says("  \n"),
        with_choices([{"message": {"role": "assistant", "content": None}}]),
    ],
)
def test_what_may_pass_is_tried_again(
    server: OpenAIServer, chat_model: OpenAIChatModel, waits: list[float], failure: Behaviour
) -> None:
    server.script_chat(failure, failure, failure, says("at last"))
    completion = chat_model.complete(REQUEST)
    assert (completion.text, completion.attempts) == ("at last", 4)
    assert waits == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("failure", "is_outside"),
    [
        *[(fails(status), True) for status in (401, 402, 403, 404, 408, 500, 503)],
        (fails(429, code="insufficient_quota"), True),
        (rate_limited(), True),
        (hangs_up(), True),
        (raw(b"null"), True),
        *[(fails(status), False) for status in (400, 413, 422)],
        (says(""), False),
    ],
)
def test_a_failure_says_whether_the_prompt_is_to_blame(
    server: OpenAIServer, chat_model: OpenAIChatModel, failure: Behaviour, *, is_outside: bool
) -> None:
    server.script_chat(*[failure] * 4)
    with pytest.raises(ChatModelError) as caught:
        chat_model.complete(REQUEST)
    assert caught.value.is_outside is is_outside


@pytest.mark.parametrize(
    "failure", [fails(400), fails(401), fails(403), fails(404), fails(422), quota_exceeded()]
)
def test_what_cannot_pass_is_not_tried_again(
    server: OpenAIServer, chat_model: OpenAIChatModel, waits: list[float], failure: Behaviour
) -> None:
    server.script_chat(failure)
    with pytest.raises(ChatModelError) as caught:
        chat_model.complete(REQUEST)
    assert caught.value.permanent
    assert str(failure.status) in str(caught.value)
    assert (len(server.requests), waits) == (1, [])


def test_a_server_that_is_too_slow_is_asked_again(server: OpenAIServer, waits: list[float]) -> None:
    server.script_chat(slow(60), says("quick"))
    model = OpenAIChatModel(KEY, server.base_url, "m", timeout=2.0, sleep=waits.append)
    with closing(model):
        completion = model.complete(REQUEST)
    assert (completion.text, completion.attempts, waits) == ("quick", 2, [1.0])


def test_a_timeout_is_told_as_one(server: OpenAIServer, waits: list[float]) -> None:
    server.script_chat(*[slow(60)] * 4)
    model = OpenAIChatModel(KEY, server.base_url, "m", timeout=0.2, sleep=waits.append)
    with closing(model), pytest.raises(ChatModelError, match=r"no answer within 0\.2 seconds"):
        model.complete(REQUEST)


def test_a_server_that_is_not_there(waits: list[float]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
        model = OpenAIChatModel(KEY, url, "m", sleep=waits.append)
        with closing(model), pytest.raises(ChatModelError, match="could not be reached") as caught:
            model.complete(REQUEST)
    assert not caught.value.permanent
    assert waits == [1.0, 2.0, 4.0]


def test_a_wrong_key_is_permanent_and_never_told(server: OpenAIServer) -> None:
    wrong = "wrong-key-that-nobody-may-read"
    model = OpenAIChatModel(wrong, server.base_url, "m")
    with closing(model), pytest.raises(ChatModelError) as caught:
        model.complete(REQUEST)
    assert caught.value.permanent
    assert "401" in str(caught.value)


def test_a_key_that_the_server_echoes_is_cut_out(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    said = f"Incorrect API key provided: {KEY}, or sk-proj-abc123\nor Bearer abc.def."
    server.script_chat(fails(401, said + " x" * 1000))
    with pytest.raises(ChatModelError) as caught:
        chat_model.complete(REQUEST)
    text = str(caught.value)
    assert "Incorrect API key provided: [key], or [key] or Bearer [key]" in text
    assert "\n" not in text
    assert len(text) < 400
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


ASK_ONCE = """
import sys
from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatRequest
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
request = ChatRequest(messages=[ChatMessage("user", "through no proxy")])
print(OpenAIChatModel("", sys.argv[1], "m", sleep=lambda _: None).complete(request).text)
"""


@pytest.mark.processes
def test_a_proxy_is_not_asked_for_a_server_on_this_machine() -> None:
    dead = "http://127.0.0.1:9"
    settings = {"HTTP_PROXY": dead, "http_proxy": dead, "ALL_PROXY": dead, "NO_PROXY": ""}
    with OpenAIServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", ASK_ONCE, server.base_url],
            capture_output=True,
            text=True,
            env={**os.environ, **settings, "no_proxy": "", "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
    assert "through no proxy" in done.stdout, done.stderr


@pytest.mark.parametrize("key", [None, "", "  "])
def test_without_a_key_a_server_that_needs_none_answers(key: str | None) -> None:
    with OpenAIServer() as server:
        model = OpenAIChatModel(key, server.base_url, "local")
        with closing(model):
            assert "what is new" in model.complete(REQUEST).text


def test_a_server_that_counts_no_tokens_and_names_no_model(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    server.script_chat(without("usage", "model", "system_fingerprint", "service_tier"))
    completion = chat_model.complete(REQUEST)
    assert completion.model == "gpt-4o-mini"
    assert (completion.prompt_tokens, completion.completion_tokens) == (None, None)


def test_text_that_cannot_be_sent_is_a_permanent_failure(chat_model: OpenAIChatModel) -> None:
    request = ChatRequest(messages=[ChatMessage("user", "lone \ud800 surrogate")])
    with pytest.raises(ChatModelError, match="can't be sent") as caught:
        chat_model.complete(request)
    assert caught.value.permanent


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://example.com", "http://"])
def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="http:// or https://"):
        OpenAIChatModel(KEY, url, "m")


def test_pictures_go_out_as_parts_of_the_content(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    picture = Picture("image/png", b"pixels", "message-1")
    message = ChatMessage("user", "What is it?", pictures=[picture])
    chat_model.complete(ChatRequest([ChatMessage("system", "Be brief."), message]))
    plain, shown = server.requests[-1].body["messages"]  # type: ignore[index]
    assert plain == {"role": "system", "content": "Be brief."}
    assert shown == {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,cGl4ZWxz"}},
        ],
    }


# Odd answers of model servers, through HTTP: what comes out can be stored and read by people.


ASKED = [ChatMessage("user", "When do you open?")]
LIMITED = ChatRequest(ASKED, max_reply_tokens=100)
FREE = ChatRequest(ASKED)
SECRET = "The owner told me Dana owes 500."


def says_content(content: Any) -> Behaviour:
    def change(body: Json) -> Json:
        (choice,) = body["choices"]
        message = {**choice["message"], "content": content}
        return {**body, "choices": [{**choice, "message": message}]}

    return changed(change)


def with_usage(**usage: Any) -> Behaviour:
    return changed(lambda body: {**body, "usage": usage})


@pytest.mark.parametrize("request_", [LIMITED, FREE])
def test_a_thought_is_no_part_of_the_answer(
    server: OpenAIServer, chat_model: OpenAIChatModel, request_: ChatRequest
) -> None:
    server.script_chat(says(f"<think>\n{SECRET}\n</think>\n\nWe open at 9.<|im_end|>"))
    assert chat_model.complete(request_).text == "We open at 9."


@pytest.mark.parametrize("finish_reason", ["length", "stop", "weird"])
def test_thoughts_alone_get_more_room(
    server: OpenAIServer, chat_model: OpenAIChatModel, waits: list[float], finish_reason: str
) -> None:
    server.script_chat(says(f"<think>{SECRET}", finish_reason=finish_reason), says("We open at 9."))
    assert chat_model.complete(LIMITED).text == "We open at 9."
    rooms = [body["max_completion_tokens"] for body in server.chat_bodies]
    assert (rooms, waits) == ([100, 100 * ROOM_TO_THINK], [])


def test_thoughts_alone_are_never_an_answer(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    server.script_chat(*[says(f"<think>{SECRET}")] * 12)
    for request in (LIMITED, FREE):
        with pytest.raises(ChatModelError) as caught:
            chat_model.complete(request)
        assert "Dana" not in str(caught.value)


def test_parts_that_are_thoughts_are_left_out(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": SECRET}]}
    said = [{"type": "text", "text": "We open "}, {"type": "text", "text": "at 9."}]
    server.script_chat(says_content([thought, *said]))
    assert chat_model.complete(FREE).text == "We open at 9."


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("half \ud83d of one", "half  of one"),
        ("\ude00 half", " half"),
        ("end \ud83d", "end "),
        ("whole \ud83d\ude00", "whole 😀"),
        ("a\x00b\x07c\x1bd\x7fe\x85f", "abcdef"),
        ("a\tb\r\nc", "a\tb\r\nc"),
        ("שלום\x00 👋🏽", "שלום 👋🏽"),
    ],
)
def test_characters_that_cannot_be_stored_are_dropped(
    server: OpenAIServer, chat_model: OpenAIChatModel, told: str, kept: str
) -> None:
    server.script_chat(says(told))
    assert chat_model.complete(FREE).text == kept


@pytest.mark.parametrize(
    ("count", "read"),
    [
        (12, 12), (0, 0), (12.0, 12), ("12", 12), (-5, None), (99_999_999_999, None),
        (1e300, None), (float("inf"), None), (float("nan"), None), ("many", None), (True, None),
        (None, None), ([1], None), ("9" * 5_000, None), (10**400, None),
    ],
)  # fmt: skip
def test_numbers_of_tokens_are_possible_ones(
    server: OpenAIServer, chat_model: OpenAIChatModel, count: Any, read: int | None
) -> None:
    server.script_chat(with_usage(prompt_tokens=count, completion_tokens=count))
    completion = chat_model.complete(FREE)
    assert (completion.prompt_tokens, completion.completion_tokens) == (read, read)


def test_what_a_server_says_of_its_failure_can_be_stored(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    server.script_chat(fails(404, "no \ud83d such \x00 model"))
    with pytest.raises(ChatModelError) as caught:
        chat_model.complete(FREE)
    str(caught.value).encode()


def test_a_transcript_can_be_stored(server: OpenAIServer) -> None:
    server.script_transcriptions(changed(lambda body: {**body, "text": "we \ud83d met\x00 at 9"}))
    transcriber = OpenAITranscriber(KEY, server.base_url, "whisper-1")
    heard = transcriber.transcribe(b"OggS", mime_type="audio/ogg")
    transcriber.close()
    assert heard.text == "we  met at 9"


# What the libraries of clients log: never an address with its credentials.


LIBRARIES = ("httpx", "httpcore", "httpx2", "httpcore2", "openai", "urllib3", "requests")


def test_a_call_of_the_model_logs_no_address(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.base_url.replace("://", "://someone:a-password@")
    caplog.set_level(logging.INFO)
    # The credentials of the address take the place of the key, which the server refuses.
    with (
        closing(OpenAIChatModel(KEY, url, "gpt-4o-mini", timeout=10)) as model,
        pytest.raises(ChatModelError) as refused,
    ):
        model.complete(ChatRequest([ChatMessage("user", "hello")]))
    assert "a-password" not in str(refused.value)
    assert "a-password" not in caplog.text
    assert [record.name for record in caplog.records if record.name.startswith(LIBRARIES)] == []


def test_a_call_of_the_embedder_logs_no_address(
    make_embedder: Callable[..., OpenAIEmbedder], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    make_embedder().embed(["hello"])
    assert [record.name for record in caplog.records if record.name.startswith(LIBRARIES)] == []
