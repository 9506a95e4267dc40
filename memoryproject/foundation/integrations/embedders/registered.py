"""Embedders as the database records their model: under its id, with its calibration and its
dimensions, whatever the embedder itself says today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
    WrongDimensionsError,
)


@dataclass(frozen=True)
class RegisteredEmbedder:
    """``embedder`` makes the vectors; one of other dimensions is refused, since it could be
    neither stored beside the others nor compared with them."""

    embedder: Embedder
    model_id: str
    dimensions: int
    calibration: Calibration

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed. Raises WrongDimensionsError."""
        vectors = self.embedder.embed(texts)
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise WrongDimensionsError(self.model_id, given=len(vector), known=self.dimensions)
        return vectors

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return self.embedder.coverage(text)


@dataclass(frozen=True)
class AbsentEmbedder:
    """Stands for a model that can't be used here any more; ``reason`` says why, and what to
    do. Recall then goes by words, and says so."""

    model_id: str
    dimensions: int
    calibration: Calibration
    reason: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Raises EmbedderError, always."""
        raise EmbedderError(self.reason, permanent=True)

    def coverage(self, text: str) -> float:
        """See Embedder.coverage: what the model knew is not known."""
        return 1.0 if text.strip() else 0.0
