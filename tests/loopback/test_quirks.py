"""What a person gets, what staff see, and how often a server is asked, for each quirk of a server.

Each row is played through a whole turn, twice: no server refuses a chat twice for one reason.
docs/models.md has the rows as a table.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import translate_error
from memoryproject.foundation.integrations.llm.openai_chat import OpenAIChatModel
from memoryproject.foundation.integrations.llm.server_traits import UnsharedTraits
from sessions_app.conversations.message_store import FORM, NAME
from sessions_app.models import Message, Turn
from tests.loopback.quirks import (
    ANSWER,
    STREAM,
    Quirk,
    QuirkServer,
    Reply,
    answers,
    at_first,
    chunk,
    completion,
    does_not_alternate,
    error,
    events,
    exceeds,
    has_late_system,
    has_names,
    has_system,
    has_tool_messages,
    refuses,
    sends,
)
from tests.world import CLIENT, World, message_from

pytestmark = pytest.mark.django_db

KEY = "secret-of-tests"
APOLOGY = "Sorry, I can't answer right now. Please try again in a few minutes."
FILTERED = "I can't answer this message. Please ask in other words."
CUT = "(The answer was too long and ends here. Ask me to go on.)"
SECRET = "The owner told me that Dana owes 500."
# Smaller than a prompt and the room of its answer.
WINDOW = 1100
CALL = '<function=search_memory>{"query": "opening"}</function>'
HTML = {"Content-Type": "text/html"}
PYDANTIC = {
    "detail": [
        {
            "type": "extra_forbidden",
            "loc": ["body", "max_completion_tokens"],
            "msg": "Extra inputs are not permitted",
            "input": 1000,
        }
    ]
}


@dataclass(frozen=True)
class Row:
    """One quirk. calls: of the first message and of the second. staff: words that they read."""

    quirk: Quirk
    person: str = ANSWER
    staff: str = ""
    calls: tuple[int, int] = (1, 1)
    learned: dict[str, Any] = field(default_factory=dict)


def refused(quirk: Quirk, **learned: Any) -> Row:
    """A quirk that costs one more call, once."""
    return Row(quirk, calls=(2, 1), learned=learned)


def fails(quirk: Quirk, staff: str, calls: int = 1, person: str = APOLOGY) -> Row:
    return Row(quirk, person, staff, (calls, calls))


def limit(body: dict[str, Any]) -> str:
    return next((name for name in body if name.startswith("max_")), "")


ROWS = {
    # The limit of an answer's length.
    "OpenAI o-series: max_tokens": refused(
        lambda body, number: (
            Reply(error("max_completion_tokens is not supported"), 400)
            if "max_completion_tokens" in body
            else Reply(completion())
        ),
        reply_limit="max_tokens",
    ),
    "an older server: unknown argument": refused(
        refuses(
            lambda body: "max_completion_tokens" in body,
            "Unrecognized request argument supplied: max_completion_tokens",
        ),
        reply_limit="max_tokens",
    ),
    "FastAPI: extra inputs": refused(
        refuses(lambda body: "max_completion_tokens" in body, PYDANTIC, 422),
        reply_limit="max_tokens",
    ),
    "a status in the words": refused(
        refuses(
            lambda body: "max_completion_tokens" in body,
            "Error code: 400 - max_completion_tokens is not supported by this model",
        ),
        reply_limit="max_tokens",
    ),
    "Anthropic: max_tokens is required": refused(
        refuses(lambda body: "max_tokens" not in body, "max_tokens: Field required"),
        reply_limit="max_tokens",
    ),
    "a smaller largest answer": refused(
        refuses(
            lambda body: body.get("max_completion_tokens", 0) > 512,
            "max_completion_tokens is too large: 1000. This model supports at most 512 completion "
            "tokens, whereas you provided 1000.",
        ),
        most_reply_tokens=512,
    ),
    "Gemini: a range that excludes its end": refused(
        refuses(
            lambda body: body.get("max_completion_tokens", 0) >= 513,
            "it has a maxOutputTokens value of 1000 but the supported range is from 1 (inclusive) "
            "to 513 (exclusive)",
        ),
        most_reply_tokens=512,
    ),
    "TGI: prompt and answer together": refused(
        exceeds(
            WINDOW,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= {window}. "
            "Given: {prompt} `inputs` tokens and {reply} `max_new_tokens`",
        ),
        window=WINDOW,
    ),
    "OpenAI: the answer has no room in the window": refused(
        exceeds(
            WINDOW,
            "This model's maximum context length is {window} tokens. However, you requested "
            "{total} tokens ({prompt} in the messages, {reply} in the completion).",
        ),
        window=WINDOW,
    ),
    "the answer's room is counted as the prompt": refused(
        exceeds(WINDOW, "Requested tokens ({total}) exceed context window of {window}"),
        window=WINDOW,
    ),
    "vLLM: the prompt is counted in part": refused(
        exceeds(
            WINDOW,
            "This model's maximum context length is {window} tokens. However, you requested "
            "{reply} output tokens and your prompt contains at least 101 input tokens, for a total "
            "of at least 1101 tokens.",
        ),
        window=WINDOW,
    ),
    "no limit at all, by name": Row(
        refuses(limit, "Unsupported parameter: max_tokens and max_completion_tokens"),
        calls=(3, 1),
        learned={"reply_limit": ""},
    ),
    # Roles and names.
    "Gemma's template: no system role": refused(
        refuses(has_system, "System role not supported"), folds_system=True
    ),
    "o1: messages[0].role": refused(
        refuses(
            has_system,
            error(
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                "unsupported_value",
                param="messages[0].role",
            ),
        ),
        folds_system=True,
    ),
    "Gemini: developer instruction": refused(
        refuses(
            has_system,
            [{"error": {"code": 400, "message": "Developer instruction is not enabled"}}],
        ),
        folds_system=True,
    ),
    "Mistral's template: roles alternate": refused(
        refuses(
            does_not_alternate,
            "After the optional system message, conversation roles must alternate "
            "user/assistant/user/assistant/...",
        ),
        joins_turns=True,
    ),
    "llama.cpp: its template as a fault": refused(
        refuses(
            does_not_alternate,
            {"error": {"code": 500, "message": "Conversation roles must alternate user/assistant"}},
            500,
        ),
        joins_turns=True,
    ),
    "vLLM: the system message stands first": refused(
        refuses(
            lambda body: has_late_system(body) or does_not_alternate(body),
            {"object": "error", "message": "System message must be at the beginning.", "code": 400},
        ),
        joins_turns=True,
    ),
    "Gemma, both": Row(
        lambda body, number: (
            Reply(error("System role not supported"), 400)
            if has_system(body)
            else Reply(error("Conversation roles must alternate user/assistant"), 400)
            if does_not_alternate(body)
            else Reply(completion())
        ),
        calls=(2, 1),
        learned={"folds_system": True},
    ),
    "Groq: property 'name' is unsupported": refused(
        refuses(has_names, "'messages.1' : property 'name' is unsupported"), no_names=True
    ),
    "OpenAI: the pattern of names": refused(
        refuses(
            has_names,
            "Invalid 'messages[1].name': string does not match pattern. Expected a string that "
            "matches the pattern '^[^\\s<|\\\\/>]+$'.",
        ),
        no_names=True,
    ),
    # Streams.
    "a stream although none was wanted": Row(
        sends(STREAM, headers={"Content-Type": "text/event-stream"})
    ),
    "a stream without its type": Row(sends(STREAM)),
    "streams only": refused(
        lambda body, number: (
            Reply(STREAM, headers={"Content-Type": "text/event-stream"})
            if body.get("stream")
            else Reply(error("This model only supports streaming; set stream=true"), 400)
        ),
        streams=True,
    ),
    "DashScope: thinking must stream": refused(
        lambda body, number: (
            Reply(events(chunk(None, reasoning_content=SECRET), chunk(ANSWER, "stop")))
            if body.get("stream")
            else Reply(
                error("parameter.enable_thinking must be set to false for non-streaming calls"), 400
            )
        ),
        streams=True,
    ),
    "a stream that breaks off with an error": fails(
        sends(events(chunk("We "), {"error": {"message": "Upstream died", "code": 502}})),
        "Upstream died",
        4,
    ),
    "a stream with comments and an empty end": Row(
        sends(b": OPENROUTER PROCESSING\n\n" + STREAM + b": done\n\n")
    ),
    "a stream that stops without an end": Row(
        sends(events(chunk("We open at 9. On Fri"), end="")), f"We open at 9.\n\n{CUT}"
    ),
    # Thoughts.
    "thoughts in the text": Row(answers(f"<think>\n{SECRET}\n</think>\n\n{ANSWER}")),
    "thoughts that began in the prompt": Row(answers(f"{SECRET}\n</think>\n\n{ANSWER}")),
    "harmony": Row(
        answers(
            f"<|channel|>analysis<|message|>{SECRET}<|end|><|start|>assistant<|channel|>final"
            f"<|message|>{ANSWER}"
        )
    ),
    "thoughts beside the text": Row(answers(reasoning_content=SECRET)),
    "OpenRouter's thoughts": Row(answers(reasoning=SECRET)),
    "Mistral's thoughts": Row(
        answers(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": SECRET}]},
                {"type": "text", "text": ANSWER},
            ]
        )
    ),
    "escaped thoughts": Row(answers(f"&lt;think&gt;{SECRET}&lt;/think&gt;{ANSWER}")),
    "thoughts in a fence": Row(answers(f"```thinking\n{SECRET}\n```\n{ANSWER}")),
    "thoughts under a heading": Row(answers(f"**Thinking:** {SECRET}\n\n**Answer:** {ANSWER}")),
    "thoughts in an object": Row(answers(json.dumps({"thought": SECRET, "answer": ANSWER}))),
    "thoughts folded away": Row(
        answers(f"<details><summary>Thinking</summary>{SECRET}</details>\n\n{ANSWER}")
    ),
    "thoughts of the user": Row(answers(f"Okay, the user is asking. {SECRET}\n\n{ANSWER}")),
    "parts as their JSON": Row(
        answers(
            json.dumps([{"type": "thinking", "thinking": SECRET}, {"type": "text", "text": ANSWER}])
        )
    ),
    "a dialogue that goes on": Row(answers(f"{ANSWER}\nUser: and on Friday?\nAssistant: {SECRET}")),
    "text after its end": Row(answers(f"{ANSWER}</s>[INST] and on Friday? [/INST] {SECRET}")),
    "text turned around": Row(answers("We \u202eopen at 9.")),
    "a call as text": Row(
        lambda body, number: Reply(
            completion(ANSWER if has_tool_messages(body) else f"Sure! {CALL}")
        ),
        calls=(2, 2),
    ),
    "a call in a form of its own": Row(
        lambda body, number: Reply(
            completion(
                ANSWER
                if has_tool_messages(body)
                else f'{SECRET}\nAction: search_memory\nAction Input: {{"query": "opening"}}'
            )
        ),
        calls=(2, 2),
    ),
    "a call over lines": Row(
        lambda body, number: Reply(
            completion(
                ANSWER
                if has_tool_messages(body)
                else "<tool_call>\n<function=search_memory>\n<parameter=query>\nopening\n"
                "</parameter>\n</function>\n</tool_call>"
            )
        ),
        calls=(2, 2),
    ),
    "a call in a channel of harmony": Row(
        lambda body, number: Reply(
            completion(
                ANSWER
                if has_tool_messages(body)
                else f"<|channel|>analysis<|message|>{SECRET}<|end|><|start|>assistant<|channel|>"
                "commentary to=functions.search_memory <|constrain|>json<|message|>"
                '{"query": "opening"}<|call|>'
            )
        ),
        calls=(2, 2),
    ),
    "a function named beside the answer": Row(
        answers(f"*calls search_memory*\n{ANSWER}"), calls=(4, 4)
    ),
    "a speaker before it": Row(answers(f"Assistant: {ANSWER}")),
    "a loop": Row(answers(f"{ANSWER} " * 400, "length")),
    "a gateway's error as the answer": fails(
        answers("Error: upstream provider returned 429: rate limit exceeded"),
        "rate limit exceeded",
        4,
    ),
    "an error that is the answer": Row(
        answers("Error 404 means low pressure."), "Error 404 means low pressure."
    ),
    "labels of the prompt": Row(answers(f"(memory, 2026-11-29 21:24) {ANSWER}")),
    "the older form of an answer": Row(
        sends({"choices": [{"text": ANSWER, "index": 0, "finish_reason": "stop"}]})
    ),
    "a call as text that nobody offered": fails(
        answers(f"<tool_call>{json.dumps({'name': 'send_email', 'arguments': {}})}</tool_call>"),
        "empty answer",
        4,
    ),
    "nothing that can be seen": fails(answers(" \n\u200b\u200e \n"), "empty answer", 4),
    "its instructions": fails(
        lambda body, number: Reply(completion(f"They are:\n{body['messages'][0]['content']}")),
        "repeated its instructions",
        person=FILTERED,
    ),
    "its instructions in capitals": fails(
        lambda body, number: Reply(
            completion("- " + body["messages"][0]["content"].upper().replace(". ", "\n- "))
        ),
        "repeated its instructions",
        person=FILTERED,
    ),
    "a part of its instructions": fails(
        lambda body, number: Reply(completion(f"“{body['messages'][0]['content'][:90]}”")),
        "repeated its instructions",
        person=FILTERED,
    ),
    "thoughts that took the room": Row(
        lambda body, number: (
            Reply(completion("", "length", reasoning_content=SECRET))
            if body["max_completion_tokens"] <= 1000
            else Reply(completion())
        ),
        calls=(2, 1),
        learned={"room": 8},
    ),
    "thoughts that left room for half an answer": Row(
        lambda body, number: (
            Reply(completion(f"<think>{SECRET}</think>We op", "length"))
            if body["max_completion_tokens"] <= 1000
            else Reply(completion())
        ),
        calls=(2, 1),
        learned={"room": 8},
    ),
    "a token of the template": Row(answers(f"{ANSWER}<|im_end|>")),
    # The text.
    "parts": Row(
        answers([{"type": "text", "text": "We open "}, {"type": "text", "text": "at 9."}])
    ),
    "parts without a type": Row(answers([{"text": ANSWER}])),
    "OpenAI's newer parts": Row(answers([{"type": "output_text", "text": ANSWER}])),
    "texts as parts": Row(answers(["We open ", "at 9."])),
    "a refusal": Row(answers(None, refusal="I can't help with that."), "I can't help with that."),
    "half a character": Row(answers("We open \ud83dat 9.")),
    "control characters": Row(answers("We open\x00 at\x07 9.")),
    "a byte order mark": Row(sends(b"\xef\xbb\xbf" + json.dumps(completion()).encode())),
    "text/plain": Row(sends(completion(), headers={"Content-Type": "text/plain"})),
    "no counts, no id, no model": Row(
        sends({"choices": [{"message": {"role": "assistant", "content": ANSWER}}]})
    ),
    "a name of 5,000 characters": Row(sends({**completion(), "model": "m" * 5_000})),
    "impossible counts": Row(
        sends({**completion(), "usage": {"prompt_tokens": -5, "completion_tokens": 1e300}})
    ),
    "counts that are none": Row(sends({**completion(), "usage": "many"})),
    # Cut and filtered.
    "cut in a sentence": Row(
        answers("We open at 9. On Friday we cl", "length"), f"We open at 9.\n\n{CUT}"
    ),
    "cut in the only sentence": Row(
        answers("We open at 9 and we clo", "length"), f"We open at 9 and we…\n\n{CUT}"
    ),
    "cut by max_tokens": Row(
        answers("We open at 9. Then", "max_tokens"), f"We open at 9.\n\n{CUT}"
    ),
    "filtered, with half an answer": fails(
        answers("We open at", "content_filter"), "filter of content", person=FILTERED
    ),
    "filtered, empty": fails(answers("", "content_filter"), "filter of content", person=FILTERED),
    "filtered, nothing": fails(
        answers(None, "content_filter"), "filter of content", person=FILTERED
    ),
    "Gemini: SAFETY": fails(answers("", "SAFETY"), "filter of content", person=FILTERED),
    "Azure: the prompt is filtered": fails(
        sends(
            error(
                "The response was filtered due to the prompt triggering Azure OpenAI's content "
                "management policy.",
                "content_filter",
                innererror={"code": "ResponsibleAIPolicyViolation"},
            ),
            400,
        ),
        "filter of content",
        person=FILTERED,
    ),
    "DashScope: data inspection": fails(
        sends(error("Input data may contain inappropriate content", "data_inspection_failed"), 400),
        "filter of content",
        person=FILTERED,
    ),
    # Errors of every form.
    "an error with status 200": fails(
        sends({"error": {"message": "Rate limit exceeded: free-models-per-day", "code": 429}}),
        "free-models-per-day",
        4,
    ),
    "OpenRouter: what the provider said": fails(
        sends(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": "quota of the project is used up"},
                }
            }
        ),
        "quota of the project is used up",
    ),
    "an error in the choice": fails(
        sends(
            {
                **completion(""),
                "choices": [
                    {
                        "finish_reason": "error",
                        "error": {"code": 502, "message": "Upstream"},
                        "message": {"content": ""},
                    }
                ],
            }
        ),
        "Upstream",
        4,
    ),
    "FastAPI: detail": fails(sends({"detail": "free quota is used up"}, 422), "free quota"),
    "Gemini: errors in a list": fails(
        sends([{"error": {"code": 404, "message": "models/x is not found"}}], 404),
        "models/x is not found",
    ),
    "a bare text": fails(sends(b"upstream connect error", 503), "503", 4),
    "LM Studio: the error is a text": fails(
        sends({"error": "No models loaded. Please load a model"}, 404), "No models loaded"
    ),
    "no choices": fails(sends({**completion(), "choices": []}), "could not be read", 4),
    "choices that are null": fails(
        sends({**completion(), "choices": None}), "could not be read", 4
    ),
    "a call that nobody offered": fails(
        answers("", "tool_calls", tool_calls=[{"id": "c"}]), "empty answer", 4
    ),
    "a page": fails(
        sends(b"<html><body>Welcome to LiteLLM</body></html>", headers=HTML),
        "Welcome to LiteLLM",
        4,
    ),
    "empty": fails(answers(""), "empty answer", 4),
    # Status.
    "429, with seconds": Row(
        at_first(1, Reply(error("slow down"), 429, {"Retry-After": "3"})), calls=(2, 1)
    ),
    "429, with milliseconds": Row(
        at_first(1, Reply(error("slow down"), 429, {"retry-after-ms": "1500"})), calls=(2, 1)
    ),
    "429 for an hour": fails(
        sends(error("Rate limit reached for the day"), 429, headers={"Retry-After": "3600"}),
        "Rate limit reached for the day",
    ),
    "429, no credit": fails(
        sends(error("You exceeded your current quota", "insufficient_quota"), 429),
        "exceeded your current quota",
    ),
    "503 while the model is loaded": Row(
        at_first(3, Reply(error("Loading model"), 503)), calls=(4, 1)
    ),
    "529": fails(sends(error("Overloaded"), 529), "Overloaded", 4),
    "401": fails(sends(error("Incorrect API key provided: sk-123"), 401), "Incorrect API key"),
    "404": fails(sends(error("The model `x` does not exist"), 404), "does not exist"),
    # Refusals that name nothing.
    "400 without a word": Row(
        refuses(lambda body: "max_completion_tokens" in body, b""),
        calls=(2, 1),
        learned={"reply_limit": "max_tokens"},
    ),
    "400 of another kind": fails(sends(error("Your card was declined"), 400), "card was declined"),
}


def leave_unanswered(world: World, text: str) -> None:
    """Leave what a paused chat does, and a message stored by the API: a user's message without an
    answer, with a name."""
    world.receive(message_from(CLIENT, text))
    Turn.objects.update(state="held", finished_at=timezone.now())
    Message.objects.update(metadata={FORM: {NAME: "Dana"}})


@pytest.mark.parametrize("name", ROWS)
def test_what_a_person_gets_and_staff_see(world: World, name: str) -> None:
    row, waits, traits = ROWS[name], list[float](), UnsharedTraits()
    with QuirkServer(row.quirk) as server:
        model = OpenAIChatModel(KEY, server.url, "quirk", sleep=waits.append, traits=traits)
        with closing(model):
            world.use(chat_model=model)
            world.with_answer_rules(max_reply_tokens=1000)
            leave_unanswered(world, "Good morning")
            calls = []
            for text in ("When do you open?", "And on Friday?"):
                before = len(server.bodies)
                replies = world.say(CLIENT, text)
                calls.append(len(server.bodies) - before)
                turn = Turn.objects.filter(message__content=text).latest("id")
                # In an outage one apology is enough.
                is_second = turn.state == "deferred" and len(calls) == 2
                assert replies == ([] if is_second else [row.person])
                shown = translate_error(turn.error)
                assert row.staff in shown
                assert bool(row.staff) == bool(shown)
                assert "sk-123" not in shown
    assert tuple(calls) == row.calls
    assert traits.load() == row.learned
    stored = [*Message.objects.values_list("content", flat=True)]
    assert not any(SECRET in text for text in stored)


def table() -> str:
    """The rows as the table of docs/models.md."""
    lines = ["| quirk | the person got | staff saw | calls | learned |", "| --- " * 5 + "|"]
    for name, row in ROWS.items():
        person = row.person.replace("\n\n", " ")
        learned = ", ".join(f"`{key}={value}`" for key, value in row.learned.items())
        calls = f"{row.calls[0]}, {row.calls[1]}"
        cells = (name, person, f"“{row.staff}”" if row.staff else "", calls, learned)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def test_the_docs_have_each_row() -> None:
    page = (Path(settings.BASE_DIR) / "docs/models.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- quirks -->")[2].partition("<!-- end of quirks -->")[0]
    assert shown.strip() == table()
