"""The interface of chat models: messages in, one text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from memoryproject.foundation.integrations.overflow import Overflow


@dataclass(frozen=True)
class ChatMessage:
    """One message of a prompt; ``role`` is system, user or assistant."""

    role: str
    content: str

    def as_dict(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True)
class AnswerSchema:
    """The format of a structured answer: a JSON Schema of an object, and its name."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """A prompt, and the texts that were recalled for it (best first).

    The recalled texts are for models that answer from memory alone. ``language`` is "en" or "he".

    ``answer_schema``: the answer must be a JSON object of this format. The model is asked for it in
    the best way that its server supports. The caller checks the answer, and the prompt also
    describes the format.

    ``max_reply_tokens``: the model writes at most so many tokens; None: as many as its server lets
    it write.
    """

    messages: Sequence[ChatMessage]
    recalled: Sequence[str] = field(default_factory=tuple)
    language: str = "en"
    answer_schema: AnswerSchema | None = None
    max_reply_tokens: int | None = None


@dataclass(frozen=True)
class Completion:
    """A model's answer.

    Token counts are None where the model doesn't report them. ``is_recital``: the answer only lists
    what was recalled, and adds no knowledge of its own.
    """

    text: str
    model: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    is_recital: bool = False


class ChatModelError(Exception):
    """The model gave no answer.

    ``permanent``: a retry can't help. ``overflow``: the prompt is longer than the model reads;
    what its server says of it.
    """

    def __init__(
        self, message: str, *, permanent: bool = False, overflow: Overflow | None = None
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.overflow = overflow


class ChatModel(Protocol):
    """A model that continues a conversation."""

    @property
    def name(self) -> str:
        """The name of the implementation, such as "openai" or "offline"."""
        ...

    def complete(
        self, request: ChatRequest, *, before_attempt: Callable[[], None] = lambda: None
    ) -> Completion:
        """Answer the request.

        ``before_attempt`` is called before every attempt, so that a caller can renew a lease; its
        exceptions propagate. Raises ChatModelError after the retries.
        """
        ...
