"""How well texts match the words of a question, computed for many texts at once.

Arrays have one row for each text, matches also one column for each term of the question. Within a
text a word counts as in BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework",
2009). Equal texts have equal values to the last bit, wherever they stand in the array.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.relevance import LexicalQuery
from memoryproject.foundation.text.tokenizer import Kind

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

_MAX_LENGTH_NORM = 3.0
_SUREST = 0.999


class CountedText(Protocol):
    """A text by its words.

    ``counts``: how often it holds each index term; terms that are in no query term's alternatives
    may be left out. Fractions are allowed, for instance for the terms of neighbouring messages.
    ``length``: in words.
    """

    @property
    def counts(self) -> Mapping[str, float]: ...

    @property
    def length(self) -> float: ...


def match_matrix(query: LexicalQuery, texts: Sequence[CountedText]) -> Floats:
    """Return how well each text matches each term: from 0 up to 1 + ``saturation``."""
    saturation, effect = query.constants.saturation, query.constants.length_effect
    columns = _columns(query)
    counts = np.zeros((len(texts), len(columns)))
    for row, text in enumerate(texts):
        for term, count in text.counts.items():
            if term in columns:
                counts[row, columns[term]] = count
    lengths = np.array([text.length for text in texts], dtype=float)
    norm = np.minimum(1 - effect + effect * lengths / query.average_length, _MAX_LENGTH_NORM)
    held = (1 + saturation) * counts / (counts + (saturation * norm)[:, None])
    matches = np.zeros((len(texts), len(query.terms)))
    for place, (_, alternatives) in enumerate(query.terms):
        if alternatives:
            chosen = [columns[term] for term, _ in alternatives]
            worth = np.array([worth for _, worth in alternatives])
            matches[:, place] = (held[:, chosen] * worth).max(axis=1)
    return matches


def coverage_of(query: LexicalQuery, matches: Floats) -> Floats:
    """Return the share of the question that each text covers, in [0, 1]."""
    if query.total <= 0:
        return np.zeros(len(matches))
    covered: Floats = np.minimum(1.0, weighted_sum(query, matches) / query.total)
    return covered * query.substance


def relevance_of(query: LexicalQuery, matches: Floats) -> Floats:
    """Return the relevance of each text by its words, in [0, 1]."""
    constants, coverage = query.constants, coverage_of(query, matches)
    with np.errstate(divide="ignore"):
        odds = constants.coverage_slope * np.log(coverage / constants.even_coverage)
    relevance: Floats = 1 / (1 + np.exp(-np.clip(odds, -60, 60)))
    return np.where(coverage > 0, relevance, 0.0)


def weighted_sum(
    query: LexicalQuery, matches: Floats, kinds: Collection[Kind] | None = None
) -> Floats:
    """Return the information of the question's words in each text, or of those of some kinds."""
    weights = np.array(
        [
            weight if kinds is None or kind in kinds else 0.0
            for (weight, _), kind in zip(query.terms, query.kinds, strict=True)
        ]
    )
    # Not a product of matrices, whose last bit depends on the row.
    total: Floats = (matches * weights).sum(axis=1)
    return total


def of_kinds(query: LexicalQuery, matches: Floats, kinds: Collection[Kind]) -> Floats:
    """Return the columns of the terms of these kinds."""
    columns: Floats = matches[:, [kind in kinds for kind in query.kinds]]
    return columns


def _columns(query: LexicalQuery) -> dict[str, int]:
    """Return a column for each index term that counts as a word of the question."""
    columns: dict[str, int] = {}
    for _, alternatives in query.terms:
        for term, _ in alternatives:
            columns.setdefault(term, len(columns))
    return columns


def fused_log_odds(query: LexicalQuery, lexical: Floats, semantic: Floats) -> Floats:
    """Return the log-odds of words and vector together, bounded.

    The log-odds are added as independent evidence. Without a vector's score (NaN) those of the
    words count alone.
    """
    constants = query.constants
    floor = constants.lowest_lexical
    words = log_odds(floor + (1 - floor) * lexical)
    return words + constants.vector_weight * np.nan_to_num(log_odds(semantic), nan=0.0)


def log_odds(probabilities: Floats) -> Floats:
    """Return the log-odds of probabilities, which are kept off 0 and 1 by a thousandth."""
    bounded = np.clip(probabilities, 1 - _SUREST, _SUREST)
    odds: Floats = np.log(bounded / (1 - bounded))
    return odds
