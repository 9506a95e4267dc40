"""A store in memory that asks the scoring functions as the database layer does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.retrieval.query import (
    LexicalQuery,
    QueryTerm,
    Scope,
    weigh_query,
)
from memoryproject.foundation.retrieval.reranking import (
    CountedTexts,
    Floats,
    best_scores,
    semantic_relevance,
)
from memoryproject.foundation.retrieval.subqueries import query_parts
from memoryproject.foundation.text.terms import index_text


class Store:
    """Texts, searched with the default embedder's vectors and by words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._embedder = WordLlamaEmbedder()
        self._indexed = [index_text(text) for text in texts]
        self._counts = [Counter(item.terms) for item in self._indexed]
        self._vectors = embed_covered(self._embedder, self.texts)

    def ask(self, question: str) -> list[tuple[float, str]]:
        """Every text with its score, best first."""
        asked = query_parts(question)
        queries = [self._weighed(text.terms) for text in asked]
        vectors = embed_covered(self._embedder, [text.text for text in asked])
        texts = CountedTexts.of(self._counts, [item.length for item in self._indexed])
        cosines = (
            _matrix(self._vectors, self._embedder.dimensions)
            @ _matrix(vectors, self._embedder.dimensions).T
        )
        curve = self._embedder.calibration
        semantics = semantic_relevance(cosines, midpoint=curve.midpoint, slope=curve.slope)
        scored = zip(best_scores(queries, texts, semantics).tolist(), self.texts, strict=True)
        return sorted(scored, key=lambda item: -item[0])

    def recalled(self, question: str, top_k: int = 5) -> list[str]:
        """The texts among the first ``top_k`` with a score of 0.7 or more."""
        return [text for score, text in self.ask(question)[:top_k] if score >= 0.7]

    def _weighed(self, terms: Sequence[QueryTerm]) -> LexicalQuery:
        frequencies = [
            sum(any(form in counts for form, _ in term.alternatives) for counts in self._counts)
            for term in terms
        ]
        average = sum(item.length for item in self._indexed) / len(self.texts)
        return weigh_query(terms, Scope(len(self.texts), average, frequencies))


def _matrix(vectors: Sequence[Sequence[float] | None], dimensions: int) -> Floats:
    """Return one row for each vector, of NaN where there is none."""
    missing = [float("nan")] * dimensions
    return np.array([missing if vector is None else vector for vector in vectors])
