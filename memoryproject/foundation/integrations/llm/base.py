"""The interface of chat models: messages in, one text out."""

import base64
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

from memoryproject.foundation.integrations.retry import CallError, do_nothing
from memoryproject.foundation.outside_services.guards import deadline, time_left
from memoryproject.foundation.text.characters import cut_at_word, estimate_tokens

logger = logging.getLogger(__name__)

# What a picture of usual size costs at OpenAI; the exact number depends on model and size.
PICTURE_TOKENS = 800


@dataclass(frozen=True)
class Picture:
    """A picture that the model sees. ``message_id``: the message that it came with, or ""."""

    content_type: str
    content: bytes = field(repr=False)
    message_id: str = ""

    @property
    def data_url(self) -> str:
        return f"data:{self.content_type};base64,{base64.b64encode(self.content).decode()}"


@dataclass(frozen=True)
class ChatMessage:
    """One message of a prompt; ``role`` is system, user, assistant or tool.

    ``tool_calls``: the calls that the assistant asked for, in OpenAI's form. ``tool_call_id``: the
    call whose result a tool's message is. ``name``: who wrote it, if it was said. ``pictures``:
    what the model sees with the text.
    """

    role: str
    content: str
    tool_calls: Sequence[Mapping[str, Any]] = ()
    tool_call_id: str = ""
    name: str = ""
    pictures: Sequence[Picture] = ()

    @cached_property
    def tokens(self) -> int:
        return message_tokens(self.content, self.tool_calls, self.pictures)

    def as_request(self) -> dict[str, Any]:
        """Return the message as chat APIs take it, with its pictures."""
        found = self.as_dict()
        if self.pictures:
            del found["pictures"]
            text = [{"type": "text", "text": self.content}] if self.content else []
            seen = [
                {"type": "image_url", "image_url": {"url": each.data_url}} for each in self.pictures
            ]
            found["content"] = [*text, *seen]
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the message for a record: what it doesn't have isn't named.

        Of a picture it has the id of its message alone. Without pictures this is as_request.
        """
        found: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            found["content"] = self.content or None
            found["tool_calls"] = [dict(call) for call in self.tool_calls]
        if self.tool_call_id:
            found["tool_call_id"] = self.tool_call_id
        if self.name:
            found["name"] = self.name
        if self.pictures:
            found["pictures"] = [each.message_id for each in self.pictures]
        return found


def message_tokens(
    content: str, tool_calls: Sequence[Mapping[str, Any]] = (), pictures: Sequence[Picture] = ()
) -> int:
    """Return an estimate of a message's tokens: of its text, its tool calls and its pictures."""
    tokens = estimate_tokens(content) + PICTURE_TOKENS * len(pictures)
    if not tool_calls:
        return tokens
    calls = json.dumps([dict(call) for call in tool_calls], ensure_ascii=False)
    return tokens + estimate_tokens(calls)


@dataclass(frozen=True)
class ToolCall:
    """A call of a function that the model asks for. ``arguments``: JSON, as the model wrote it."""

    id: str
    name: str
    arguments: str

    def as_dict(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True)
class AnswerSchema:
    """The format of a structured answer: a JSON Schema of an object, and its name."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """A prompt, and the texts that were recalled for it (best first).

    The recalled texts are for models that answer from memory alone.

    ``answer_schema``: the answer must be a JSON object of this format. The model is asked for it in
    the best way that its server supports. The caller checks the answer, and the prompt also
    describes the format.

    ``max_reply_tokens``: the model writes at most so many tokens; None: as many as its server lets
    it write. ``tools``: functions that the model may ask for, in OpenAI's form; one that can't call
    any gets none.
    """

    messages: Sequence[ChatMessage]
    recalled: Sequence[str] = field(default_factory=tuple)
    answer_schema: AnswerSchema | None = None
    max_reply_tokens: int | None = None
    tools: Sequence[Mapping[str, Any]] = ()


class Finish(Enum):
    """How a model's answer ended: by itself, or at the limit of its length."""

    WHOLE = "whole"
    CUT = "cut"


@dataclass(frozen=True)
class Completion:
    """A model's answer.

    Token counts are None where the model doesn't report them. ``is_recital``: the answer only lists
    what was recalled, and adds no knowledge of its own. ``tool_calls``: what the model wants to be
    called before it answers; the text may be empty then.
    """

    text: str
    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    is_recital: bool = False
    finish: Finish = Finish.WHOLE
    tool_calls: Sequence[ToolCall] = ()


class ChatModelError(CallError):
    """The model gave no answer."""


class ChatModel(Protocol):
    """A model that continues a conversation."""

    @property
    def name(self) -> str:
        """The name of the implementation, such as "openai" or "offline"."""

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = lambda: None
    ) -> Completion:
        """Answer the request.

        ``before_attempt`` is called before every attempt, so that a caller can renew a lease; its
        exceptions propagate. Raises ChatModelError after the retries.
        """


# Of what is left until the deadline, the first of two models may take so much.
FIRST_SHARE = 0.6


class FallbackChatModel:
    """Asks the second model where the first one fails, within the same deadline."""

    name = "openai"

    def __init__(self, first: ChatModel, second: ChatModel) -> None:
        self._first = first
        self._second = second

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete. Where both fail, the error is that of the first."""
        left = time_left()
        try:
            with deadline(left * FIRST_SHARE) if left is not None else nullcontext():
                return self._first.complete(request, before_attempt=before_attempt)
        except ChatModelError as error:
            if error.overflow is not None:
                # The prompt is made shorter.
                raise
            logger.warning("The fallback model is asked: %s", error)
            failure = error
        try:
            return self._second.complete(request, before_attempt=before_attempt)
        except ChatModelError as error:
            logger.warning("The fallback model gave no answer either: %s", error)
            failure.is_outside = failure.is_outside or error.is_outside
            raise failure from None


# Answer without a language model: list what was recalled. The caller says why, in words.


MAX_MEMORIES = 5
MAX_MEMORY_LENGTH = 300


class OfflineChatModel:
    """A chat model that needs no server: it answers with ChatRequest.recalled alone."""

    name = "offline"

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = do_nothing
    ) -> Completion:
        """See ChatModel.complete. Never fails by itself. The text is that of ``recited_lines``."""
        before_attempt()
        text = recited_lines(request.recalled)
        return Completion(text=text, model=self.name, is_recital=True)


def recited_lines(recalled: Sequence[str]) -> str:
    """Return the best of ``recalled`` (best first), each once and on a line of its own.

    At most MAX_MEMORIES lines of MAX_MEMORY_LENGTH characters; "" if nothing was recalled.
    """
    lines = (" ".join(text.split()) for text in recalled)
    distinct = list(dict.fromkeys(line for line in lines if line))[:MAX_MEMORIES]
    return "\n".join(f"• {cut_at_word(text, MAX_MEMORY_LENGTH)}" for text in distinct)


# The costs of tokens.


MILLION = 1_000_000
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class ModelTokens:
    """The tokens sent to a model and received from it, and their cost.

    The cost is in the currency of the prices; None if the model has no price.
    """

    model: str
    prompt: int
    completion: int
    cost: float | None


def model_tokens(
    model: str, prompt: int, completion: int, prices: Mapping[str, tuple[float, float]]
) -> ModelTokens:
    """Return a model's tokens with their cost.

    ``prices``: the prices of a million input and output tokens, by model. A provider reports a
    model's dated name (gpt-4o-mini-2024-07-18); the price of the undated name applies to it, too.
    """
    price = prices.get(model) or prices.get(_DATED.sub("", model))
    cost = (prompt * price[0] + completion * price[1]) / MILLION if price else None
    return ModelTokens(model, prompt, completion, cost)
