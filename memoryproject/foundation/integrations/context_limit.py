"""The number of tokens that a model reads at once, as its server reported it.

Prompts are kept within it, so that the server doesn't refuse each of them again.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta, timezone
from typing import Protocol

from django.core.cache import cache
from django.db import DatabaseError

from memoryproject.foundation.integrations.overflow import Overflow

logger = logging.getLogger(__name__)

# Then a longer prompt is tried: the server may have been given a larger window.
KEPT_FOR = timedelta(days=1)
# As of MAX_CONTEXT_TOKENS: a lower limit would leave no room for a conversation.
MIN_LIMIT = 500
# Our count of tokens is an estimate.
SAFETY = 0.95
# Where the server doesn't say how it counts the prompt, its tokens may be smaller than ours.
UNKNOWN_TOKENIZER = 0.7


@dataclass(frozen=True)
class LearnedLimit:
    """A limit in our estimate of tokens, and the time of the refusal that it was learned from."""

    tokens: int
    learned_at: datetime


class ContextLimit(Protocol):
    """Remembers the limit of one model on one server."""

    def learned(self) -> LearnedLimit | None:
        """Return what is known; None where nothing was refused lately."""
        ...

    def learn(self, tokens: int) -> None:
        """Remember that longer prompts are refused; at least MIN_LIMIT. Raises nothing."""
        ...


class SharedContextLimit:
    """A limit that all processes share, and that survives a restart."""

    def __init__(self, *, base_url: str, model: str) -> None:
        digest = hashlib.sha256(f"{base_url}\n{model}".encode()).hexdigest()
        self._key = f"context-limit:{digest}"
        self._model = model

    def learned(self) -> LearnedLimit | None:
        """See ContextLimit.learned."""
        try:
            known = cache.get(self._key)
        except DatabaseError as error:
            logger.warning("The limit of %s can't be read: %s", self._model, error)
            return None
        return LearnedLimit(*known) if known is not None else None

    def learn(self, tokens: int) -> None:
        """See ContextLimit.learn."""
        tokens = max(tokens, MIN_LIMIT)
        known = self.learned()
        learned = LearnedLimit(tokens, datetime.now(timezone.utc))
        try:
            cache.set(self._key, astuple(learned), KEPT_FOR.total_seconds())
        except DatabaseError as error:
            logger.warning("The limit of %s can't be stored: %s", self._model, error)
            return
        if known is None or known.tokens != tokens:
            logger.warning(
                "The model %s refuses prompts of more than about %d tokens. Until %s they are kept "
                "within that. Set MAX_CONTEXT_TOKENS=%d to keep the limit, or give the server a "
                "larger context window.",
                self._model,
                tokens,
                (learned.learned_at + KEPT_FOR).strftime("%Y-%m-%d %H:%M UTC"),
                tokens,
            )


def next_limit(*, sent: int, overflow: Overflow, reply: int = 0) -> int:
    """Return the limit for the next try, after a prompt of ``sent`` tokens was refused.

    ``sent`` is our estimate. Where the server says how many tokens fit, the limit is what they are
    in our estimate, less the room for ``reply`` tokens; else it is half of what was sent.
    """
    if overflow.window is None:
        return sent // 2
    room = max(overflow.window - reply, overflow.window // 2)
    fits = room * SAFETY * sent / overflow.prompt if overflow.prompt else room * UNKNOWN_TOKENIZER
    # A number that can't be right is no help.
    return int(fits) if sent // 8 < fits < sent * SAFETY else sent // 2
