"""The chat model for OpenAI and for every server with a compatible chat completions API."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletion

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.context_limit import read_overflow
from memoryproject.foundation.integrations.llm.base import (
    AnswerSchema,
    ChatModelError,
    ChatRequest,
    Completion,
)
from memoryproject.foundation.integrations.llm.thoughts import without_thoughts
from memoryproject.foundation.integrations.openai_api import OpenAIConnection, unreadable_answer
from memoryproject.foundation.integrations.retry import AttemptFailed, call_with_retries, do_nothing
from memoryproject.foundation.outside_services.guards import Guard
from memoryproject.foundation.text.characters import storable

# Read a chat completion: the only place where a model's answer enters.


# The width of the columns that hold a model's name.
MAX_MODEL_NAME = 128
# No model reads or writes as many at once: such a number says nothing, and would use up the limits
# of a day.
MAX_TOKENS = 100_000_000
# Other parts of a content are thoughts or files.
TEXT_PARTS = ("text", "output_text")


class EndedBeforeTextError(Exception):
    """The model thought, and ended before its answer began."""


def read_answer(answer: ChatCompletion, *, model: str) -> Completion:
    """Return the answer, for any finish reason.

    ``model``: the one that was asked; it counts where the answer names none. Raises AttemptFailed
    and EndedBeforeTextError.
    """
    overflow = read_overflow(200, getattr(answer, "error", None))
    if overflow is not None:
        raise AttemptFailed(ErrorText("model_too_long"), permanent=True, overflow=overflow)
    try:
        choice = answer.choices[0]
        written = _text_of(choice.message.content) or _text_of(choice.message.refusal)
    except (AttributeError, LookupError, TypeError):
        raise unreadable_answer() from None
    text = without_thoughts(storable(written))
    if not text.strip():
        if written.strip() or getattr(choice, "finish_reason", None) == "length":
            raise EndedBeforeTextError
        raise AttemptFailed(ErrorText("model_empty"))
    named: object = getattr(answer, "model", None)
    name = _one_line(named) if isinstance(named, str) else ""
    return Completion(
        text=text,
        model=(name or _one_line(model))[:MAX_MODEL_NAME],
        prompt_tokens=_read_count(answer, "prompt_tokens"),
        completion_tokens=_read_count(answer, "completion_tokens"),
    )


def _text_of(content: object) -> str:
    """Return a content's text; of one in parts, that of the parts that are text."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if part.get("type") in TEXT_PARTS]
        return "".join(text for text in texts if isinstance(text, str))
    if content is None or isinstance(content, str):
        return content or ""
    raise unreadable_answer()


def _one_line(name: str) -> str:
    return " ".join(storable(name).split())


def _read_count(answer: ChatCompletion, name: str) -> int | None:
    """Return a number of tokens; None where there is none that could be right."""
    count: object = getattr(getattr(answer, "usage", None), name, None)
    if isinstance(count, bool) or not isinstance(count, (int, float, str)):
        return None
    try:
        number = float(count)
    except (ValueError, OverflowError):
        return None
    return round(number) if math.isfinite(number) and 0 <= number <= MAX_TOKENS else None


class Form(IntEnum):
    """The ways to request a structured answer, from the most demanding to the most compatible.

    The last one is the prompt alone.
    """

    JSON_SCHEMA = 0
    JSON_OBJECT = 1
    PROMPT = 2


class ReplyLimit(IntEnum):
    """The ways to limit the length of an answer, from the current parameter to none."""

    MAX_COMPLETION_TOKENS = 0
    MAX_TOKENS = 1
    NONE = 2


# A model that thinks before it answers counts its thoughts, too. If they take all the room that
# an answer has, it gets so many times more.
ROOM_TO_THINK = 8


class OpenAIChatModel:
    """Asks a model with POST {base_url}/chat/completions.

    If a server refuses ``response_format`` with a schema, the model is asked for any JSON object.
    If the server refuses that, too, only the prompt asks for it. The length of the answer is
    limited in the same manner: by ``max_completion_tokens``, ``max_tokens``, or not at all. The
    accepted ways are remembered.

    api_key, base_url: may be empty (no key; OpenAI's own server).
    timeout: seconds for one attempt; ``sleep`` waits between attempts.
    """

    name = "openai"

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        model: str,
        *,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        guard: Guard | None = None,
    ) -> None:
        """Raises ValueError for a base URL that isn't http(s)."""
        self._connection = OpenAIConnection(api_key, base_url, timeout=timeout, guard=guard)
        self._model = model
        self._sleep = sleep
        self._form = Form.JSON_SCHEMA
        self._reply_limit = ReplyLimit.MAX_COMPLETION_TOKENS
        self._room_to_think = 1

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete."""
        try:
            completion, attempts = call_with_retries(
                lambda: self._ask(request), sleep=self._sleep, before_attempt=before_attempt
            )
        except AttemptFailed as failure:
            raise ChatModelError.of(failure) from None
        return replace(completion, attempts=attempts)

    def close(self) -> None:
        """Free the sockets."""
        self._connection.close()

    def _ask(self, request: ChatRequest) -> Completion:
        if request.answer_schema is None:
            return self._ask_limited(Form.PROMPT, request)
        form = self._form
        while True:
            try:
                completion = self._ask_limited(form, request)
            except AttemptFailed as failure:
                if not failure.refused or failure.overflow or form is Form.PROMPT:
                    raise
                form = Form(form + 1)
            else:
                self._form = form
                return completion

    def _ask_limited(self, form: Form, request: ChatRequest) -> Completion:
        """Ask in one form, with the limit of the answer's length that the server accepts."""
        limit = self._reply_limit if request.max_reply_tokens is not None else ReplyLimit.NONE
        while True:
            try:
                completion = self._ask_in(form, request, limit)
            except AttemptFailed as failure:
                if not failure.refused or failure.overflow or limit is ReplyLimit.NONE:
                    raise
                limit = ReplyLimit(limit + 1)
            except EndedBeforeTextError:
                if limit is ReplyLimit.NONE or self._room_to_think > 1:
                    raise AttemptFailed(ErrorText("model_empty")) from None
                self._room_to_think = ROOM_TO_THINK
            else:
                if request.max_reply_tokens is not None:
                    self._reply_limit = limit
                return completion

    def _ask_in(self, form: Form, request: ChatRequest, limit: ReplyLimit) -> Completion:
        body = self._body(form, request, limit)
        # The package's own function for this compares each message with the types of all that a
        # request may hold, which takes longer than to build an answer's prompt.
        answer = self._connection.call(
            lambda client: client.post("/chat/completions", body=body, cast_to=ChatCompletion)
        )
        return read_answer(answer, model=self._model)

    def _body(self, form: Form, request: ChatRequest, limit: ReplyLimit) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [message.as_request() for message in request.messages],
        }
        if form is not Form.PROMPT and request.answer_schema is not None:
            body["response_format"] = _response_format(form, request.answer_schema)
        if limit is not ReplyLimit.NONE:
            room = (request.max_reply_tokens or 0) * self._room_to_think
            body[limit.name.lower()] = room
        return body


def load_early() -> None:
    """Let the package build its types of requests and answers, which it does at its first call.

    Sends nothing: the answer comes from this function.
    """
    message = {"role": "assistant", "content": "loaded"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=answer))
    with openai.OpenAI(
        api_key="none",
        base_url="http://127.0.0.1",
        http_client=httpx2.Client(transport=transport, trust_env=False),
    ) as client:
        client.post("/chat/completions", body={}, cast_to=ChatCompletion)


def _response_format(form: Form, schema: AnswerSchema) -> dict[str, Any]:
    if form is Form.JSON_OBJECT:
        return {"type": "json_object"}
    wanted = {"name": schema.name, "schema": dict(schema.schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}
