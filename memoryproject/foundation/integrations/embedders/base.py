"""What an embedder is to us: texts in, unit vectors out, and how far to trust them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryproject.foundation.errors.stored_errors import ErrorText


@dataclass(frozen=True)
class Calibration:
    """Maps a raw cosine to the probability that two texts are about the same thing:
    1 / (1 + exp(-slope * (cosine - midpoint))). Where it comes from: see ``calibrations``."""

    midpoint: float
    slope: float


class EmbedderError(Exception):
    """No vectors could be made. ``permanent``: trying again can't help."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class WrongDimensionsError(EmbedderError):
    """A model gave vectors of another size than it is known to have: it is not that model."""

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
        """Names what made a vector: vectors of two ids are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """How many floats a vector has. May ask the model once; raises EmbedderError then."""
        ...

    @property
    def calibration(self) -> Calibration:
        """For this model's cosines."""
        ...

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of ``dimensions`` floats a text, in order; the zero vector where the
        text has nothing to embed (its coverage is 0 then). Raises EmbedderError after the
        retries."""
        ...

    def coverage(self, text: str) -> float:
        """How well the model knows the text's language and words, in [0, 1]. Where it is
        below 0.5 the vector says nothing and carries no weight."""
        ...
