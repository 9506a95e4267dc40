"""Rank texts against a query by their words and by their vectors, within one scope.

The scope is a queryset with only the texts that may be seen, so a filter never costs results.
It is used for memories here and for messages by higher packages. Both store ``terms`` and
``term_count``, and keep their vectors in a table of their own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import Model, QuerySet
from pgvector.django import CosineDistance

from memories_app.search.corpus_stats import Repeats, stats_without, term_stats_find
from memories_app.search.lexical_search import (
    Match,
    Words,
    any_of,
    best_share,
    terms_fetch,
    words_of,
)
from memories_app.search.vector_search import nearest_keys
from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    Embedder,
    EmbedderError,
)
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.retrieval.relevance import LexicalQuery, semantic_relevance
from memoryproject.foundation.retrieval.subqueries import Candidate, QueryPart, best_scores

logger = logging.getLogger(__name__)

# The number of candidates by vector, and by words.
NEAREST = 100
MATCHING = 300


@dataclass(frozen=True)
class Question:
    """A prepared query: the whole text, then the single questions in it, each with a vector.

    Without a vector the words decide alone.
    """

    subqueries: Sequence[QueryPart]
    vectors: Sequence[Sequence[float] | None]
    model: str
    calibration: Calibration


@dataclass(frozen=True)
class Ranked:
    """A text's key with its fused score and its raw cosine to the whole query.

    The cosine is None for a text without a vector.
    """

    key: UUID
    score: float
    similarity: float | None


@dataclass(frozen=True)
class WordSearch:
    """The lexical matches of a query in a scope.

    ``frequencies`` has one number for each known term of a text. ``texts`` is the size of the
    scope, an estimate if it is large.
    """

    words: Words
    matches: Sequence[Match]
    queries: Sequence[LexicalQuery]
    frequencies: Sequence[Sequence[int]]
    texts: int


# The scope can't contain anything.
NOTHING_FOUND = WordSearch(Words({}, 0), [], [], [], 0)


def prepare_query(
    subqueries: Sequence[QueryPart], embedder: Embedder, *, topics: Sequence[str] = ()
) -> tuple[Question, list[Sequence[float] | None], bool]:
    """Return the query with a vector for each of ``topics``, and whether the embedder succeeded.

    The embedder is called once.
    """
    texts = [*(text.text for text in subqueries), *topics]
    vectors: Sequence[Sequence[float] | None] = [None] * len(texts)
    worked = True
    try:
        vectors = embed_covered(embedder, texts)
    except EmbedderError as error:
        logger.error("The query could not be embedded, words decide alone: %s", error)
        worked = False
    question = Question(
        subqueries, vectors[: len(subqueries)], embedder.model_id, embedder.calibration
    )
    return question, list(vectors[len(subqueries) :]), worked


def search_words(
    subqueries: Sequence[QueryPart], scope: QuerySet[Any], *, repeats: Repeats | None = None
) -> WordSearch:
    """Return the lexical matches of the query in the scope.

    repeats: returns how many of some texts only repeat the query; they don't make its words
    frequent. Raises EmptyResultSet for a scope that can't contain anything.
    """
    words = words_of(subqueries)
    held = term_stats_find(subqueries, words, scope)
    held = held if repeats is None else stats_without(held, words, repeats)
    return WordSearch(
        words,
        held.matches,
        [held.weigh(text, words) for text in subqueries],
        [held.frequencies_of(text, words) for text in subqueries],
        held.texts,
    )


def rank(
    question: Question,
    scope: QuerySet[Any],
    vectors: type[Model],
    *,
    key: str,
    top_k: int,
    found: WordSearch | None = None,
    sure: bool = True,
) -> list[Ranked]:
    """Return the best ``top_k`` texts of the scope, best first.

    vectors: the model of the scope's vectors; ``key`` is its foreign key to the scope.
    found: the result of ``search_words`` for this scope, if it exists already.
    sure: see ``nearest_keys``.
    The number of queries doesn't depend on the query or the results.
    """
    try:
        found = search_words(question.subqueries, scope) if found is None else found
        near = _Vectors(question, scope, vectors, key, sure=sure, texts=found.texts)
        return _rank(question, scope, found, near)[:top_k]
    except EmptyResultSet:
        # A filter that excludes everything.
        return []


def cosines_of(
    keys: Sequence[UUID],
    question: Question,
    scope: QuerySet[Any],
    vectors: type[Model],
    *,
    key: str,
) -> dict[UUID, list[float | None]]:
    """Return for each text with a vector its cosine to each text of the query.

    The cosine is None where the query's text has no vector.
    """
    return _Vectors(question, scope, vectors, key).cosines(keys)


def _rank(
    question: Question, scope: QuerySet[Any], found: WordSearch, vectors: _Vectors
) -> list[Ranked]:
    words, matches, queries = found.words, found.matches, found.queries
    keys = dict.fromkeys([*_best_matching(queries, question.subqueries, words, matches)])
    keys.update(dict.fromkeys(vectors.nearest()))
    cosines = vectors.cosines(list(keys))
    curve = question.calibration
    nothing: list[float | None] = [None] * len(queries)
    texts = terms_fetch(words, scope, list(keys))
    near = [cosines.get(pk, nothing) for pk in texts]
    candidates = [
        Candidate(
            counts=Counter(terms),
            length=length,
            semantics=[
                None
                if cosine is None
                else semantic_relevance(cosine, midpoint=curve.midpoint, slope=curve.slope)
                for cosine in row
            ],
        )
        for (length, terms), row in zip(texts.values(), near, strict=True)
    ]
    scores = best_scores(queries, candidates)
    ranked = [Ranked(pk, score, row[0]) for pk, score, row in zip(texts, scores, near, strict=True)]
    return sorted(ranked, key=lambda item: (-item.score, str(item.key)))


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
    return [pk for match in best for pk in match.keys][:MATCHING]


class _Vectors:
    """The vectors of the scope and of the query."""

    def __init__(
        self,
        question: Question,
        scope: QuerySet[Any],
        vectors: type[Model],
        key: str,
        *,
        sure: bool = True,
        texts: int | None = None,
    ) -> None:
        self._sure = sure
        self._texts = texts
        self._query_vectors = question.vectors
        self._scope = scope
        self._key = key
        self._vectors = vectors
        self._model = question.model
        self._near = question.calibration.midpoint
        self._distances = {
            f"distance_{place}": CosineDistance("vector", vector)
            for place, vector in enumerate(question.vectors)
            if vector is not None
        }
        self._rows = vectors._default_manager.filter(model=question.model)

    def nearest(self) -> Iterable[UUID]:
        """Return the keys of the texts that are nearest to any part of the query."""
        return nearest_keys(
            scope=self._scope,
            vectors=self._vectors,
            key=self._key,
            model=self._model,
            queries=[vector for vector in self._query_vectors if vector is not None],
            limit=NEAREST,
            near=self._near,
            sure=self._sure,
            texts=self._texts,
        )

    def cosines(self, keys: Sequence[UUID]) -> dict[UUID, list[float | None]]:
        """Return for each text with a vector its cosine to each part of the query.

        The cosine is None where the part has no vector.
        """
        if not self._distances or not keys:
            return {}
        rows = self._rows.filter(**{f"{self._key}__in": any_of(keys)})
        found = rows.values_list(f"{self._key}_id", *self._distances.values())
        return {pk: self._by_part(distances) for pk, *distances in found}

    def _by_part(self, distances: Sequence[float]) -> list[float | None]:
        left = iter(distances)
        return [None if vector is None else 1.0 - next(left) for vector in self._query_vectors]
