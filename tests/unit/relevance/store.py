"""A store in memory that asks the scoring functions as the database layer does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import wordllama

from memoryproject.lib.relevance import Scope, fused_score, semantic_relevance, weigh_query
from memoryproject.lib.text.query import query_terms
from memoryproject.lib.text.terms import index_text

MIDPOINT, SLOPE = 0.31, 10.0


@lru_cache(maxsize=1)
def model() -> Any:
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


def covered(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and sum(letter < "\u0250" for letter in letters) * 2 >= len(letters)


class Store:
    """Texts, searched with the default embedder's vectors and by words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._indexed = [index_text(text) for text in texts]
        self._counts = [Counter(item.terms) for item in self._indexed]
        self._vectors = model().embed(self.texts, norm=True)

    def ask(self, question: str) -> list[tuple[float, str]]:
        """Every text with its score, best first."""
        terms = query_terms(question)
        frequencies = [
            sum(any(form in counts for form, _ in term.alternatives) for counts in self._counts)
            for term in terms
        ]
        average = sum(item.length for item in self._indexed) / len(self.texts)
        query = weigh_query(terms, Scope(len(self.texts), average, frequencies))
        cosines = self._vectors @ model().embed([question], norm=True)[0]
        scored = []
        for number, text in enumerate(self.texts):
            words = query.relevance(self._counts[number], self._indexed[number].length)
            semantic = None
            if covered(question) and covered(text):
                cosine = float(cosines[number])
                semantic = semantic_relevance(cosine, midpoint=MIDPOINT, slope=SLOPE)
            scored.append((fused_score(words, semantic, substance=query.substance), text))
        return sorted(scored, key=lambda item: -item[0])

    def recalled(self, question: str, top_k: int = 5) -> list[str]:
        """The texts among the first ``top_k`` with a score of 0.7 or more."""
        return [text for score, text in self.ask(question)[:top_k] if score >= 0.7]
