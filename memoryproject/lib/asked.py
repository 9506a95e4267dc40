"""A message as what is looked for: all of it, and each question in it by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryproject.lib.relevance import FITTED, Constants, LexicalQuery, fused_score
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
    counts: dict[str, int],
    length: float,
    constants: Constants = FITTED,
) -> float:
    """How relevant a text is to the message: as relevant as to the question in it that it
    answers best.

    queries: one for each of ``asked_texts``, weighed for the scope; ``semantics``: the semantic
    relevance for each, None where a vector is missing. ``counts`` and ``length``: see
    ``LexicalQuery.relevance``. In [0, 1].
    """
    return max(
        fused_score(
            query.relevance(counts, length),
            semantic,
            substance=query.substance,
            constants=constants,
        )
        for query, semantic in zip(queries, semantics, strict=True)
    )
