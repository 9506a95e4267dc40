"""What is searched and what is found: a question, the texts of a scope, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.integrations.embedders.base import Calibration
from memoryproject.foundation.retrieval.query import LexicalQuery
from memoryproject.foundation.retrieval.reranking import CountedTexts, Floats
from memoryproject.foundation.retrieval.subqueries import QueryPart, Words

Vector: TypeAlias = Sequence[float]


@dataclass(frozen=True)
class Question:
    """A prepared query: the whole text, then the single questions in it, each with a vector.

    Without a vector the words decide alone.
    """

    subqueries: Sequence[QueryPart]
    vectors: Sequence[Vector | None]
    model: str
    calibration: Calibration


@dataclass(frozen=True)
class WordSearch:
    """The lexical matches of a query in a scope.

    ``candidates``: the texts that may be among the best by their words, as the scope names them.
    ``frequencies`` has one number for each known term of a text. ``texts`` is the size of the
    scope, an estimate if it is large.
    """

    words: Words
    candidates: Any
    queries: Sequence[LexicalQuery]
    frequencies: Sequence[Sequence[int]]
    texts: int


@dataclass(frozen=True)
class RankedTexts:
    """Texts in the order of their scores, best first: as the scope names them."""

    texts: Any
    scores: Floats
    similarities: Floats


class SearchedTexts(Protocol):
    """The texts of a scope. It names them as it likes: by rows, or by ids."""

    def search_words(self, subqueries: Sequence[QueryPart], words: Words, most: int) -> WordSearch:
        """Return the statistics of the words, and the ``most`` best candidates by them."""
        ...

    def nearest(self, vectors: Sequence[Vector], most: int) -> Any:
        """Return the ``most`` texts that are nearest to any of the vectors."""
        ...

    def joined(self, one: Any, other: Any) -> Any:
        """Return the texts of both, each once."""
        ...

    def counted(self, texts: Any, terms: Sequence[str]) -> CountedTexts:
        """Return how often these texts hold these terms."""
        ...

    def cosines(self, texts: Any, vectors: Sequence[Vector | None]) -> Floats:
        """Return the cosines: one row for each text; NaN where there is no vector."""
        ...

    def ordered(self, texts: Any, scores: Floats, most: int) -> NDArray[np.int64]:
        """Return the places of the ``most`` best; those with equal scores in the order of ids."""
        ...

    def taken(self, texts: Any, places: NDArray[np.int64]) -> Any:
        """Return the texts at these places."""
        ...

    def ids(self, texts: Any) -> list[UUID]:
        """Return the ids of these texts."""
        ...
