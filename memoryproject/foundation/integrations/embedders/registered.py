"""Embedders with the model's id, calibration and dimensions from the database.

The database's values count, not the current values of the embedder itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
    WrongDimensionsError,
    embed_queries,
)


@dataclass(frozen=True)
class RegisteredEmbedder:
    """Embed with ``embedder`` and refuse vectors of other dimensions than the registered ones.

    Such vectors could not be stored with the others or compared with them.
    """

    embedder: Embedder
    model_id: str
    dimensions: int
    calibration: Calibration

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed. Raises WrongDimensionsError."""
        return self._checked(self.embedder.embed(texts))

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """See QueryEmbedder.embed_queries. Raises WrongDimensionsError."""
        return self._checked(embed_queries(self.embedder, texts))

    def _checked(self, vectors: list[list[float]]) -> list[list[float]]:
        for vector in vectors:
            if len(vector) != self.dimensions:
                raise WrongDimensionsError(self.model_id, given=len(vector), known=self.dimensions)
        return vectors

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return self.embedder.coverage(text)


@dataclass(frozen=True)
class AbsentEmbedder:
    """A placeholder for a model that can't be used here any more.

    ``reason`` states why, and the remedy. Recall then uses lexical search, and reports it.
    """

    model_id: str
    dimensions: int
    calibration: Calibration
    reason: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Always raises EmbedderError."""
        raise EmbedderError(self.reason, permanent=True)

    def coverage(self, text: str) -> float:
        """See Embedder.coverage. The model's knowledge is unknown here."""
        return 1.0 if text.strip() else 0.0
