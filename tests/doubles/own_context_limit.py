"""The limit of a model that isn't shared with other processes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from memoryproject.foundation.integrations.context_limit import MIN_LIMIT, LearnedLimit


@dataclass
class OwnContextLimit:
    """A limit that only its holder knows."""

    kept: LearnedLimit | None = None

    def learned(self) -> LearnedLimit | None:
        """See ContextLimit.learned."""
        return self.kept

    def learn(self, tokens: int) -> None:
        """See ContextLimit.learn."""
        self.kept = LearnedLimit(max(tokens, MIN_LIMIT), datetime.now(timezone.utc))
