"""Ask the chat model, with a shorter prompt where its server refuses one that is too long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memoryproject.foundation.integrations.context_limit import ContextLimit, next_limit
from memoryproject.foundation.integrations.llm.base import ChatModelError, Completion
from sessions_app.turns.prompt import Prompt

logger = logging.getLogger(__name__)

# Each time about half of the prompt is sent.
MAX_SHORTENINGS = 4


class Composed(Protocol):
    """A prompt with what its maker knows of it."""

    @property
    def prompt(self) -> Prompt: ...


C = TypeVar("C", bound=Composed)


@dataclass(frozen=True)
class Answered(Generic[C]):
    """The last prompt and the model's answer to it, or the error.

    ``refused``: how many longer prompts were refused before.
    """

    composed: C
    completion: Completion | None = None
    error: ChatModelError | None = None
    refused: int = 0


def ask_model(
    *,
    compose: Callable[[int | None], C],
    complete: Callable[[C], Completion],
    context_limit: ContextLimit | None,
    reply_tokens: int,
) -> Answered[C]:
    """Compose a prompt and ask the model; where it is too long, again with about half of it.

    ``compose`` gets the limit in tokens that the server is known to have, or None. What a refusal
    shows of the limit is stored in ``context_limit``, for the next prompts.
    """
    known = context_limit.learned() if context_limit is not None else None
    composed = compose(known.tokens if known else None)
    for refused in range(MAX_SHORTENINGS + 1):
        try:
            return Answered(composed, complete(composed), refused=refused)
        except ChatModelError as error:
            sent = composed.prompt.tokens
            if error.overflow is None or refused == MAX_SHORTENINGS:
                return Answered(composed, error=error, refused=refused)
            limit = next_limit(sent=sent, overflow=error.overflow, reply=reply_tokens)
            logger.info("A prompt of about %d tokens was refused: %d are tried.", sent, limit)
            if context_limit is not None:
                context_limit.learn(limit)
            shorter = compose(limit)
            if shorter.prompt.tokens >= sent:
                # Nothing is left that could be left out.
                return Answered(composed, error=error, refused=refused)
            composed = shorter
    raise AssertionError("not reached")
