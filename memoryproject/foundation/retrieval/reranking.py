"""The relevance of texts to a question, judged against each other.

A question for the price of one thing finds five texts that name the thing, and one of them has the
price. By itself each of the five holds a good share of the question. So the score includes, besides
the content of a text, whether it leads the others or is behind, and whether it has the kind of
answer that the question asks for. A question for a name and nothing else ("what do we know about
Zeta?") has no best answer: then each text counts by itself. Most questions are between these two.

The weights are fitted by ``benchmarks/fit_reranking.py``: see docs/recall.md.

All texts are scored at once. Arrays have one row for each text; matches have one column for each
text and one row for each term of the question, so that sums over the terms add whole rows. Within a
text a word counts as in BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework",
2009). Equal texts have equal values to the last bit, wherever they stand in the array.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.query import IN_USE, INFORMATIVE, LexicalQuery
from memoryproject.foundation.text.tokenizer import Kind

Floats: TypeAlias = NDArray[np.float64]

_MAX_LENGTH_NORM = 3.0
# Probabilities are kept off 0 and 1 by what is left.
_SUREST = 0.999
# So much information besides a name (in nats) makes a question half specific.
HALF_SPECIFIC = 0.3
# A greater distance behind the best doesn't count further.
MAX_DISTANCE = 6.0
# A greater lead doesn't count further.
MAX_LEAD = 4.0
# The reference for a lead if there is no second text: a text that holds no word of the question.
_NO_WORD = math.log(IN_USE.lowest_lexical / (1 - IN_USE.lowest_lexical))
# The tolerance for equal coverage: rounding must not distinguish two texts.
_AS_MUCH = 0.999


@dataclass(frozen=True)
class CountedTexts:
    """Texts by their words, in rows.

    ``columns``: the column in ``counts`` of each index term; terms that no query asks for may be
    left out. ``counts``: how often each text holds each term. ``lengths``: in words.
    """

    columns: Mapping[str, int]
    counts: Floats
    lengths: Floats

    @classmethod
    def of(cls, counts: Sequence[Mapping[str, float]], lengths: Sequence[float]) -> CountedTexts:
        """Return texts of which each is given by the counts of its terms."""
        columns: dict[str, int] = {}
        for text in counts:
            for term in text:
                columns.setdefault(term, len(columns))
        table = np.zeros((len(counts), len(columns)))
        for row, text in enumerate(counts):
            for term, count in text.items():
                table[row, columns[term]] = count
        return cls(columns, table, np.array(lengths, dtype=float))

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True)
class Weights:
    """The weight of each kind of evidence, in log-odds a unit.

    offset: the constant. fused: the log-odds of the words and the vector by themselves. lead: how
    far these are ahead of the second best text, for the best one, unless it is about another name.
    behind: how far they are behind the best. crowd: the logarithm of the number of texts that hold
    as much of the question. telling: the information of the words in it that aren't names. farther:
    how much farther its vector is than the nearest, in log-odds. answers, lacks: it has the kind of
    answer that the question asks for, or lacks it. least: how well it matches the informative word
    of the question that it matches least. other: the question has names and the text has none of
    them.
    """

    offset: float
    fused: float
    lead: float
    behind: float
    crowd: float
    telling: float
    farther: float
    answers: float
    lacks: float
    least: float
    other: float


# Fitted by benchmarks/fit_reranking.py, rounded.
DEFAULT_WEIGHTS = Weights(
    offset=-1.88,
    fused=0.58,
    lead=0.92,
    behind=-0.26,
    crowd=-0.21,
    telling=0.2,
    farther=-0.27,
    answers=0.58,
    lacks=-1.51,
    least=2.47,
    other=-0.1,
)

_NAMES = [field.name for field in fields(Weights)]
FUSED, BEHIND = _NAMES.index("fused"), _NAMES.index("behind")
# The weight of being behind for a question for a name and nothing else: "Dana Levi" is named in the
# best text, and only "Dana" in this one.
BEHIND_ALONE = -0.3


def features_of(query: LexicalQuery, texts: CountedTexts, semantic: Floats) -> Floats:
    """Return one row for each text, with one column for each of ``Weights``.

    semantic: the relevance of each text's vector to the question, in [0, 1]; NaN without one.
    """
    matches = match_matrix(query, texts)
    shares = coverage_of(query, matches)
    fused = fused_log_odds(query, _relevance(query, shares), semantic)
    behind = np.minimum(fused.max(initial=-60.0) - fused, MAX_DISTANCE)
    asks = Kind.SOUGHT in query.kinds
    nothing = np.zeros(len(texts))
    answers = _holds_any(query, matches, Kind.SOUGHT) if asks else nothing
    other = 1 - _holds_any(query, matches, Kind.NAME) if Kind.NAME in query.kinds else nothing
    columns = [
        np.ones(len(texts)),
        fused,
        _lead(fused) * (1 - other),
        behind,
        np.log1p(len(texts) - np.searchsorted(np.sort(shares), shares * _AS_MUCH)),
        weighted_sum(query, matches, INFORMATIVE),
        _farther(semantic),
        answers,
        asks - answers,
        _least_held(query, matches),
        other,
    ]
    return np.stack(columns, axis=1)


def chances(
    query: LexicalQuery,
    texts: CountedTexts,
    semantic: Floats,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
) -> Floats:
    """Return for each text the probability that it is relevant to the question, in [0, 1].

    ``texts`` must include all texts of the scope that may be relevant. semantic: as for
    ``features_of``.
    """
    if not len(texts):
        return np.zeros(0)
    total = mixed(features_of(query, texts, semantic), weights, specific_share(query))
    return query.substance * probabilities(total)


def best_scores(
    queries: Sequence[LexicalQuery],
    texts: CountedTexts,
    semantics: Floats,
    *,
    part_worth: float = IN_USE.part_worth,
) -> Floats:
    """Return the relevance of each text to a message, in [0, 1].

    It is the relevance to the question of the message that the text answers best. queries: one for
    each of ``query_parts``, weighted for the scope. texts: all that may be relevant, because they
    are judged against each other. semantics: one column for each query, as for ``features_of``.
    part_worth: the value of an answer to one question of the message.
    """
    best = np.zeros(len(texts))
    for place, query in enumerate(queries):
        worth = part_worth if place else 1.0
        best = np.maximum(best, worth * chances(query, texts, semantics[:, place]))
    return best


def mixed(features: Floats, weights: Weights, specific: float) -> Floats:
    """Return the log-odds of each text, mixed by how specific the question is.

    The specific share uses the weighted sum of the evidence, the rest the text's score by itself.
    """
    judged: Floats = features @ array_of(weights) * specific
    return judged + by_itself(features) * (1 - specific)


@cache
def array_of(weights: Any) -> Floats:
    """Return the numbers of a dataclass of weights."""
    return np.array(astuple(weights))


def by_itself(features: Floats) -> Floats:
    """Return the log-odds of each text for a question for a name."""
    own: Floats = features[:, FUSED] + BEHIND_ALONE * features[:, BEHIND]
    return own


def specific_share(query: LexicalQuery) -> float:
    """Return how specific the question is, in [0, 1]."""
    return 1 - math.exp(-query.specific * math.log(2) / HALF_SPECIFIC)


def _lead(fused: Floats) -> Floats:
    """Return the lead of the best text over the second; 0 for the others and for a tie."""
    best = int(fused.argmax())
    second = max(fused[:best].max(initial=_NO_WORD), fused[best + 1 :].max(initial=_NO_WORD))
    lead = np.zeros(len(fused))
    lead[best] = min(max(fused[best] - second, 0.0), MAX_LEAD)
    return lead


def _farther(semantic: Floats) -> Floats:
    """Return how much farther each vector is than the nearest, 0 without a vector."""
    near = log_odds(semantic)
    distance = np.minimum(np.fmax.reduce(near, initial=-60.0) - near, MAX_DISTANCE)
    return _without_nan(distance)


def _holds_any(query: LexicalQuery, matches: Floats, kind: Kind) -> Floats:
    """Return 1.0 for the texts that hold a term of this kind."""
    held: Floats = (of_kinds(query, matches, (kind,)) > 0).any(axis=0).astype(float)
    return held


def _least_held(query: LexicalQuery, matches: Floats) -> Floats:
    """Return the match of the informative word of the question that each text matches least.

    In [0, 1]; 0 if the question has no such word.
    """
    informative = of_kinds(query, matches, (*INFORMATIVE, Kind.NAME))
    if not informative.size:
        return np.zeros(matches.shape[1])
    least: Floats = np.minimum(1.0, informative.min(axis=0))
    return least


def match_matrix(query: LexicalQuery, texts: CountedTexts) -> Floats:
    """Return how well each term is matched by each text: from 0 up to 1 + ``saturation``."""
    saturation, effect = query.constants.saturation, query.constants.length_effect
    norm = np.minimum(1 - effect + effect * texts.lengths / query.average_length, _MAX_LENGTH_NORM)
    counts = np.ascontiguousarray(texts.counts.T)
    held = (1 + saturation) * counts / (counts + saturation * norm)
    matches = np.zeros((len(query.terms), len(texts)))
    for place, (_, alternatives) in enumerate(query.terms):
        best = matches[place]
        for term, worth in alternatives:
            if term in texts.columns:
                np.maximum(best, held[texts.columns[term]] * worth, out=best)
    return matches


def semantic_relevance(cosines: Floats, *, midpoint: float, slope: float) -> Floats:
    """Return the probabilities that two texts are about the same thing, in [0, 1].

    They follow from their cosines and a model's calibration. NaN for NaN.
    """
    return probabilities(slope * (cosines - midpoint))


def coverage_of(query: LexicalQuery, matches: Floats) -> Floats:
    """Return the share of the question that each text covers, in [0, 1]."""
    if query.total <= 0:
        return np.zeros(matches.shape[1])
    covered: Floats = np.minimum(1.0, weighted_sum(query, matches) / query.total)
    return covered * query.substance


def relevance_of(query: LexicalQuery, matches: Floats) -> Floats:
    """Return the relevance of each text by its words, in [0, 1]."""
    return _relevance(query, coverage_of(query, matches))


def _relevance(query: LexicalQuery, coverage: Floats) -> Floats:
    constants = query.constants
    with np.errstate(divide="ignore"):
        odds = constants.coverage_slope * np.log(coverage / constants.even_coverage)
    return np.where(coverage > 0, probabilities(odds), 0.0)


def weighted_sum(
    query: LexicalQuery, matches: NDArray[Any], kinds: Collection[Kind] | None = None
) -> Floats:
    """Return the information of the question's words in each text, or of those of some kinds."""
    weights = np.array(
        [
            weight if kinds is None or kind in kinds else 0.0
            for (weight, _), kind in zip(query.terms, query.kinds, strict=True)
        ]
    )
    # Not a product of matrices, whose last bit depends on the column.
    total: Floats = (matches * weights[:, None]).sum(axis=0)
    return total


def of_kinds(query: LexicalQuery, matches: Floats, kinds: Collection[Kind]) -> Floats:
    """Return the rows of the terms of these kinds."""
    rows: Floats = matches[[place for place, kind in enumerate(query.kinds) if kind in kinds]]
    return rows


def fused_log_odds(query: LexicalQuery, lexical: Floats, semantic: Floats) -> Floats:
    """Return the log-odds of words and vector together, bounded.

    The log-odds are added as independent evidence. Without a vector's score (NaN) those of the
    words count alone.
    """
    constants = query.constants
    floor = constants.lowest_lexical
    words = log_odds(floor + (1 - floor) * lexical)
    return words + constants.vector_weight * _without_nan(log_odds(semantic))


def log_odds(chances: Floats) -> Floats:
    """Return the log-odds of probabilities, which are kept off 0 and 1 by a thousandth."""
    bounded = np.minimum(np.maximum(chances, 1 - _SUREST), _SUREST)
    odds: Floats = np.log(bounded / (1 - bounded))
    return odds


def probabilities(odds: Floats) -> Floats:
    """Return the probabilities that log-odds express, NaN for NaN."""
    # Several times as fast as ``np.clip``.
    bounded = np.minimum(np.maximum(odds, -60), 60)
    found: Floats = 1 / (1 + np.exp(-bounded))
    return found


def _without_nan(values: Floats) -> Floats:
    """Return the values, 0 for NaN."""
    return np.where(np.isnan(values), 0.0, values)
