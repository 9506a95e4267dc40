"""Ranks texts against a question: by their words and by their vectors, within one scope.

The scope is a queryset that holds only what may be seen, so a filter never costs results.
Used for memories here and for messages above; both store ``terms`` and ``term_count``, and
their vectors in a table of their own.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import Avg, Count, Model, Q, QuerySet, TextField, Value
from pgvector.django import CosineDistance

from memoryproject.integrations.embedders.base import Calibration, Embedder, EmbedderError
from memoryproject.lib.relevance import Scope, fused_score, semantic_relevance, weigh_query
from memoryproject.lib.text.query import QueryTerm, query_terms, search_terms

logger = logging.getLogger(__name__)

MIN_COVERAGE = 0.5
# Candidates by vector, and by words; the newest first where a word is in more texts.
NEAREST = 100
MATCHING = 3_000


@dataclass(frozen=True)
class Question:
    """A query as it is searched for; without a vector the words decide alone."""

    terms: Sequence[QueryTerm]
    vector: Sequence[float] | None
    model: str
    calibration: Calibration


@dataclass(frozen=True)
class Ranked:
    """A text's key with its raw cosine (None without a vector) and its fused score."""

    key: UUID
    score: float
    similarity: float | None


def prepare_query(query: str, embedder: Embedder) -> tuple[Question, bool]:
    """The question, and whether the embedder did its part (False: it failed)."""
    vector, worked = None, True
    if embedder.coverage(query) >= MIN_COVERAGE:
        try:
            vector = embedder.embed([query])[0]
        except EmbedderError as error:
            logger.error("The query could not be embedded, words decide alone: %s", error)
            worked = False
    question = Question(query_terms(query), vector, embedder.model_id, embedder.calibration)
    return question, worked


def rank(
    question: Question,
    scope: QuerySet[Any],
    vectors: type[Model],
    *,
    key: str,
    top_k: int,
) -> list[Ranked]:
    """The best ``top_k`` of the scope, best first.

    vectors: the model of the scope's vectors; ``key`` is its foreign key to the scope.
    """
    candidates = _matching(question, scope)
    cosines = _cosines(question, scope, vectors, key, list(candidates))
    missing = [pk for pk in cosines if pk not in candidates]
    candidates.update({pk: (terms, n) for pk, terms, n in _texts(scope, missing)})
    query = weigh_query(question.terms, _scope_figures(question.terms, scope))
    wanted = {term for item in question.terms for term, _ in item.alternatives}
    ranked = []
    for pk, (terms, length) in candidates.items():
        counts = Counter(term for term in terms if term in wanted)
        cosine = cosines.get(pk)
        semantic = None
        if cosine is not None:
            curve = question.calibration
            semantic = semantic_relevance(cosine, midpoint=curve.midpoint, slope=curve.slope)
        score = fused_score(query.relevance(counts, length), semantic, substance=query.substance)
        ranked.append(Ranked(pk, score, cosine))
    return sorted(ranked, key=lambda item: (-item.score, str(item.key)))[:top_k]


def _matching(question: Question, scope: QuerySet[Any]) -> dict[UUID, tuple[list[str], int]]:
    """Candidates by words: their terms and lengths."""
    words = search_terms(question.terms)
    if not words:
        return {}
    found = scope.filter(terms__overlap=words).order_by("-pk")
    return {
        pk: (terms, n) for pk, terms, n in found.values_list("pk", "terms", "term_count")[:MATCHING]
    }


def _texts(scope: QuerySet[Any], keys: Sequence[UUID]) -> list[tuple[UUID, list[str], int]]:
    if not keys:
        return []
    return list(scope.filter(pk__in=keys).values_list("pk", "terms", "term_count"))


def _cosines(
    question: Question,
    scope: QuerySet[Any],
    vectors: type[Model],
    key: str,
    candidates: Sequence[UUID],
) -> dict[UUID, float]:
    """The nearest of the scope, and the candidates by words, with their cosines."""
    if question.vector is None:
        return {}
    of_model = vectors._default_manager.filter(model=question.model).annotate(
        distance=CosineDistance("vector", question.vector)
    )
    in_scope = of_model.filter(**{f"{key}__in": scope.values("pk")}).order_by("distance")
    found = dict(in_scope.values_list(f"{key}_id", "distance")[:NEAREST])
    rest = [pk for pk in candidates if pk not in found]
    if rest:
        found |= dict(of_model.filter(**{f"{key}__in": rest}).values_list(f"{key}_id", "distance"))
    return {pk: 1.0 - distance for pk, distance in found.items()}


def _scope_figures(terms: Sequence[QueryTerm], scope: QuerySet[Any]) -> Scope:
    """How many texts the scope has, how long they are, and in how many each word stands."""
    kind = ArrayField(TextField())
    counts = {
        f"term_{place}": Count(
            "pk",
            filter=Q(
                terms__overlap=Value([word for word, _ in term.alternatives], output_field=kind)
            ),
        )
        for place, term in enumerate(terms)
    }
    figures = scope.order_by().aggregate(
        texts=Count("pk"), average_length=Avg("term_count"), **counts
    )
    return Scope(
        texts=figures["texts"],
        average_length=float(figures["average_length"] or 0.0),
        frequencies=[figures[f"term_{place}"] for place in range(len(terms))],
    )
