"""Messages are stored in the forms in which other programs write them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.calling import Api, error_of
from tests.api.test_context_form import context
from tests.api.test_sessions import opened

pytestmark = pytest.mark.django_db

ALLERGY = "My daughter Noa is allergic to sesame"
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}


def store(api: Api, *messages: dict[str, Any]) -> Any:
    session_id = opened(api)["session_id"]
    return api.post(f"sessions/{session_id}/messages/", {"messages": list(messages)})


@pytest.mark.parametrize(
    ("message", "role", "content"),
    [
        ({"role": "user", "content": [{"type": "input_text", "text": ALLERGY}]}, "user", ALLERGY),
        (
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Noted", "logprobs": []}],
            },
            "assistant",
            "Noted",
        ),
        (
            {"role": "user", "content": ["Hello", {"type": "text", "text": "you"}]},
            "user",
            "Hello\nyou",
        ),
        ({"role": "user", "content": [{"type": "poem", "text": "roses"}]}, "user", "roses"),
        ({"role": "user", "content": [PICTURE]}, "user", "[image]"),
        (
            {"role": "user", "content": [{"type": "input_file", "file_id": "f1"}, "see"]},
            "user",
            "[file]\nsee",
        ),
        (
            {"role": "ai", "content": [{"type": "thinking", "thinking": "hm"}, "Yes"]},
            "assistant",
            "Yes",
        ),
        (
            {"role": "ai", "content": [{"type": "reasoning_text", "text": "hm"}, "Yes"]},
            "assistant",
            "Yes",
        ),
        ({"role": "developer", "content": "Be brief"}, "system", "Be brief"),
        ({"role": "human", "content": "Hi"}, "user", "Hi"),
        ({"role": "assistant", "content": None, "refusal": "I can't"}, "assistant", "I can't"),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
            "assistant",
            "No",
        ),
        (
            # As OpenAI's client writes an answer.
            {
                **{"role": "assistant", "content": "Yes", "refusal": None, "annotations": []},
                **{"audio": None, "function_call": None, "tool_calls": None},
            },
            "assistant",
            "Yes",
        ),
    ],
)
def test_each_form_is_read(api: Api, message: dict[str, Any], role: str, content: str) -> None:
    answer = store(api, message)
    assert answer.status_code == 201, answer.content
    (stored,) = answer.json()["messages"]
    assert (stored["role"], stored["content"]) == (role, content)


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "tool_result", "tool_use_id": "x", "content": "18"}],
        [{"type": "input_text"}],
        [{"type": "input_text", "text": {"value": "x"}}],
        [{"type": "hologram", "data": "…"}],
        [{"type": None, "text": None}],
        [7],
        [{}],
        [],
        {"type": "text", "text": "x"},
    ],
)
def test_what_can_not_be_read_is_refused_and_never_emptied(api: Api, content: Any) -> None:
    answer = store(api, {"role": "user", "content": content})
    assert error_of(answer, 400)["attr"].startswith("messages.0.content")


def test_a_text_in_parts_is_recalled_and_stands_in_the_context(api: Api) -> None:
    session_id = opened(api)["session_id"]
    message = {"role": "user", "content": [{"type": "input_text", "text": ALLERGY}]}
    api.post(f"sessions/{session_id}/messages/", {"messages": [message]})
    found = context(api, session_id, query="Who is allergic to sesame?")["messages"]
    assert {"role": "user", "content": ALLERGY} in found


def test_a_custom_tool_is_called_and_answered(api: Api) -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    session_id = opened(api)["session_id"]
    said = [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
    ]
    answer = api.post(f"sessions/{session_id}/messages/", {"messages": said})
    assert answer.status_code == 201, answer.content
    assert context(api, session_id)["messages"][1:] == said
    both = {**call, "function": {"name": "sql", "arguments": "{}"}}
    for wrong in (both, {"id": "c1", "type": "function", "custom": call["custom"]}):
        message = {"role": "assistant", "content": None, "tool_calls": [wrong]}
        assert error_of(store(api, message), 400)["attr"].startswith("messages.0.tool_calls.0")
