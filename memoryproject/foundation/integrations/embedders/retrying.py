"""An embedder for background work: it tolerates longer failures than a waiting person would."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
)

logger = logging.getLogger(__name__)

# In addition to the embedder's own retries. Most rate limits are for each minute.
DELAYS = (10.0, 30.0, 60.0, 120.0)


@dataclass(frozen=True)
class RetryingEmbedder:
    """Retry ``embedder`` after each of ``delays`` if a retry can help."""

    embedder: Embedder
    sleep: Callable[[float], None]
    delays: Sequence[float] = DELAYS

    @property
    def model_id(self) -> str:
        return self.embedder.model_id

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    @property
    def calibration(self) -> Calibration:
        return self.embedder.calibration

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed."""
        for delay in self.delays:
            try:
                return self.embedder.embed(texts)
            except EmbedderError as error:
                if error.permanent:
                    raise
                logger.warning("No vectors yet, again in %g seconds: %s", delay, error)
            self.sleep(delay)
        return self.embedder.embed(texts)

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return self.embedder.coverage(text)
