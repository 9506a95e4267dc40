"""A message as what is looked for: all of it, and each question in it by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memoryproject.foundation.retrieval.relevance import IN_USE, Constants, LexicalQuery
from memoryproject.foundation.retrieval.reranking import DEFAULT_WEIGHTS, Evidence, Weights, chances
from memoryproject.foundation.text.clauses import question_parts
from memoryproject.foundation.text.query import QueryTerm, query_terms


@dataclass(frozen=True)
class QueryPart:
    """A text to look for, and its terms."""

    text: str
    terms: Sequence[QueryTerm]


@dataclass(frozen=True)
class Candidate:
    """A text that may be relevant: its index terms that the message asks for, its length in
    words, and its semantic relevance to each of ``query_parts`` (None without a vector)."""

    counts: Mapping[str, float]
    length: float
    semantics: Sequence[float | None]


def query_parts(message: str) -> list[QueryPart]:
    """The message itself, then the questions in it, where there is more in it than one."""
    texts = [message, *question_parts(message)]
    return [QueryPart(text, query_terms(text)) for text in texts]


def best_scores(
    queries: Sequence[LexicalQuery],
    texts: Sequence[Candidate],
    *,
    constants: Constants = IN_USE,
    weights: Weights = DEFAULT_WEIGHTS,
) -> list[float]:
    """How relevant each text is to the message: as relevant as to the question in it that it
    answers best.

    queries: one for each of ``query_parts``, weighed for the scope. texts: all that may be
    relevant, as they are judged beside each other. In [0, 1].
    """
    best = [0.0] * len(texts)
    for place, query in enumerate(queries):
        worth = constants.part_worth if place else 1.0
        evidence = [Evidence(text.counts, text.length, text.semantics[place]) for text in texts]
        scores = chances(query, evidence, weights=weights, constants=constants)
        best = [max(old, worth * new) for old, new in zip(best, scores, strict=True)]
    return best
