"""What a chat model is to us: messages in, one text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ChatMessage:
    """One message of a prompt; ``role`` is system, user or assistant."""

    role: str
    content: str

    def as_dict(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True)
class AnswerSchema:
    """The form of an answer that is data: a JSON Schema of an object, and its name."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """A prompt, with what was recalled for it as plain texts (best first), for models
    that answer from memory alone. ``language`` is "en" or "he".

    ``answer_schema``: the answer is to be a JSON object of this form. A model is asked for it
    as well as its server can be; whoever asks checks what comes back, and the prompt says the
    form, too."""

    messages: Sequence[ChatMessage]
    recalled: Sequence[str] = field(default_factory=tuple)
    language: str = "en"
    answer_schema: AnswerSchema | None = None


@dataclass(frozen=True)
class Completion:
    """A model's answer. Token counts are None where the model doesn't report them.
    ``is_recital``: it only lists what was recalled, and adds no knowledge of its own."""

    text: str
    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    is_recital: bool = False


class ChatModelError(Exception):
    """The model gave no answer. ``permanent``: trying again can't help. ``too_long``: the
    prompt was longer than the model reads."""

    def __init__(self, message: str, *, permanent: bool = False, too_long: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.too_long = too_long


class ChatModel(Protocol):
    """A model that continues a conversation."""

    @property
    def name(self) -> str:
        """Which implementation this is, such as "openai" or "offline"."""
        ...

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = lambda: None
    ) -> Completion:
        """Answer the request. ``before_attempt`` is called before every try, so that a
        caller can renew a lease; what it raises goes through. Raises ChatModelError after
        the retries."""
        ...
