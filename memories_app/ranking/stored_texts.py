"""Search the memories of a scope that is too large to be kept in memory, in the database.

Texts are named by their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet
from numpy.typing import NDArray
from pgvector.django import CosineDistance

from memories_app.models import Memory, MemoryEmbedding
from memories_app.ranking.corpus_stats import TermStats, term_stats_find
from memories_app.ranking.lexical_search import Match, best_share, held_counts, terms_fetch
from memories_app.ranking.searched_texts import Vector, WordSearch
from memories_app.search.facade import any_of, nearest_keys
from memoryproject.foundation.retrieval.query import LexicalQuery
from memoryproject.foundation.retrieval.reranking import CountedTexts, Floats
from memoryproject.foundation.retrieval.subqueries import QueryPart, Words


class StoredTexts:
    """The memories of a queryset. See ``SearchedTexts``.

    model: whose vectors are searched. near, sure: see ``nearest_keys``. The number of queries
    depends neither on the query nor on the results.
    """

    def __init__(
        self, scope: QuerySet[Memory], *, model: str, near: float, sure: bool = True
    ) -> None:
        self._scope = scope
        self._model = model
        self._near = near
        self._sure = sure
        self._size: int | None = None

    def search_words(self, subqueries: Sequence[QueryPart], words: Words, most: int) -> WordSearch:
        try:
            held = term_stats_find(subqueries, words, self._scope)
        except EmptyResultSet:
            # A filter that excludes everything.
            held = TermStats([], held_counts(words, []), 0, 0.0)
        self._size = held.texts
        queries = [held.weigh(text, words) for text in subqueries]
        return WordSearch(
            words,
            _best_matching(queries, subqueries, words, held.matches)[:most],
            queries,
            [held.frequencies_of(text, words) for text in subqueries],
            held.texts,
        )

    def nearest(self, vectors: Sequence[Vector], most: int) -> list[UUID]:
        if self._size == 0:
            return []
        return nearest_keys(
            scope=self._scope,
            model=self._model,
            queries=vectors,
            limit=most,
            near=self._near,
            sure=self._sure,
            texts=self._size,
        )

    def joined(self, one: list[UUID], other: list[UUID]) -> list[UUID]:
        return list(dict.fromkeys([*one, *other]))

    def counted(self, texts: list[UUID], terms: Sequence[str]) -> CountedTexts:
        # One that was deleted since it was found counts as empty; it isn't shown.
        found = terms_fetch(terms, self._scope, texts)
        rows = [found.get(key, (0, [])) for key in texts]
        return CountedTexts.of([Counter(held) for _, held in rows], [length for length, _ in rows])

    def cosines(self, texts: list[UUID], vectors: Sequence[Vector | None]) -> Floats:
        found = np.full((len(texts), len(vectors)), np.nan)
        given = [place for place, vector in enumerate(vectors) if vector is not None]
        if not given or not texts:
            return found
        rows = MemoryEmbedding.objects.filter(model=self._model, memory__in=any_of(texts))
        distances: dict[str, Any] = {
            f"distance_{place}": CosineDistance("vector", vectors[place]) for place in given
        }
        places = {key: place for place, key in enumerate(texts)}
        for key, *far in rows.values_list("memory_id", *distances.values()):
            found[places[key], given] = 1.0 - np.array(far)
        return found

    def ordered(self, texts: list[UUID], scores: Floats, most: int) -> NDArray[np.int64]:
        best = sorted(range(len(texts)), key=lambda place: (-scores[place], texts[place]))
        return np.array(best[:most], np.int64)

    def taken(self, texts: list[UUID], places: NDArray[np.int64]) -> list[UUID]:
        return [texts[place] for place in places]

    def ids(self, texts: list[UUID]) -> list[UUID]:
        return texts


def _best_matching(
    queries: Sequence[LexicalQuery],
    subqueries: Sequence[QueryPart],
    words: Words,
    matches: Sequence[Match],
) -> list[UUID]:
    """Return the lexical candidates: those that contain the most of the query."""
    matching = (match for match in matches if match.keys)
    best = sorted(
        matching, key=lambda match: best_share(match, words, subqueries, queries), reverse=True
    )
    return [pk for match in best for pk in match.keys]
