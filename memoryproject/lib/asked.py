"""A message as what is looked for: all of it, and each question in it by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memoryproject.lib.relevance import IN_USE, Constants, LexicalQuery, fused_score
from memoryproject.lib.text.clauses import question_parts
from memoryproject.lib.text.query import QueryTerm, query_terms


@dataclass(frozen=True)
class Asked:
    """A text to look for, and its terms."""

    text: str
    terms: Sequence[QueryTerm]


def asked_texts(message: str) -> list[Asked]:
    """The message itself, then the questions in it, where there is more in it than one."""
    texts = [message, *question_parts(message)]
    return [Asked(text, query_terms(text)) for text in texts]


def best_score(
    queries: Sequence[LexicalQuery],
    semantics: Sequence[float | None],
    *,
    counts: Mapping[str, float],
    length: float,
    constants: Constants = IN_USE,
) -> float:
    """How relevant a text is to the message: as relevant as to the question in it that it
    answers best.

    queries: one for each of ``asked_texts``, weighed for the scope. semantics: the semantic
    relevance to each, None where a vector is missing. For ``counts`` and ``length`` see
    ``LexicalQuery.relevance``. In [0, 1].
    """
    scores: list[float] = []
    for query, semantic in zip(queries, semantics, strict=True):
        lexical = query.relevance(counts, length)
        score = fused_score(lexical, semantic, substance=query.substance, constants=constants)
        scores.append(score * constants.part_worth if scores else score)
    return max(scores)
