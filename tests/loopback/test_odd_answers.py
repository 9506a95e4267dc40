"""Odd answers of model servers, through HTTP: what comes out can be stored and read by people."""

from __future__ import annotations

from typing import Any

import pytest

from memoryproject.foundation.integrations.llm.base import ChatMessage, ChatModelError, ChatRequest
from memoryproject.foundation.integrations.llm.openai_chat import ROOM_TO_THINK, OpenAIChatModel
from memoryproject.foundation.integrations.openai_transcriber import OpenAITranscriber
from tests.loopback.conftest import KEY
from tests.loopback.openai_behaviours import Behaviour, Json, changed, fails, says
from tests.loopback.openai_server import OpenAIServer

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


def test_the_name_of_a_model_fits_its_column(
    server: OpenAIServer, chat_model: OpenAIChatModel
) -> None:
    odd = f"/models/\x00\ud83d{'m' * 5_000}"
    server.script_chat(changed(lambda body: {**body, "model": odd}))
    name = chat_model.complete(FREE).model
    assert name.startswith("/models/mmm")
    assert len(name) == 128


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
