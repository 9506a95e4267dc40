"""How relevant texts are to a question, judged beside each other.

A question for the price of one thing finds five texts that name the thing, and one of them has
the price. By itself each of the five holds a good share of the question. So beside what a text
holds counts how far it is behind the best, and how many others hold as much; and whether it has
the kind of answer that is asked for. A question for a name and nothing else ("what do we know
about Zeta?") has no best answer: there each text counts by itself. Most questions are between.

The weights are fitted by ``benchmarks/fit_rivals.py``: see docs/recall.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from memoryproject.lib.relevance import (
    IN_USE,
    TELLING,
    Constants,
    LexicalQuery,
    fused_log_odds,
    log_odds,
)
from memoryproject.lib.text.kinds import Kind

Floats = NDArray[np.float64]

# So much information asked for beside a name (in nats) makes a question about half specific.
HALF_SPECIFIC = 0.3
# Further behind than this is no worse.
FARTHEST = 6.0
# So that two texts of one coverage are not told apart by rounding.
_AS_MUCH = 0.999


@dataclass(frozen=True)
class Evidence:
    """A text as evidence for one question: its index terms that the question asks for, its
    length in words, and its semantic relevance to the question (None without a vector)."""

    counts: Mapping[str, float]
    length: float
    semantic: float | None


@dataclass(frozen=True)
class Weights:
    """What each kind of evidence counts, in log-odds a unit.

    offset: for nothing. fused: the log-odds of the words and the vector by themselves. behind:
    how far these are behind the best text. crowd: the logarithm of how many texts hold as much
    of the question. names, telling: the information of names and of other words that it holds.
    farther: how much farther its vector is than the nearest, in log-odds. answers, lacks: it
    has the kind of answer that is asked for, or hasn't.
    """

    offset: float
    fused: float
    behind: float
    crowd: float
    names: float
    telling: float
    farther: float
    answers: float
    lacks: float


# Fitted by benchmarks/fit_rivals.py, rounded.
IN_OFFICE = Weights(
    offset=-1.34,
    fused=0.52,
    behind=-0.36,
    crowd=-0.27,
    names=0.06,
    telling=0.2,
    farther=-0.39,
    answers=0.77,
    lacks=-0.74,
)


FUSED, BEHIND = map(list(Weights.__dataclass_fields__).index, ("fused", "behind"))
# What being behind counts for a question for a name and nothing else.
BEHIND_ALONE = -0.3


def features_of(
    query: LexicalQuery, texts: Sequence[Evidence], constants: Constants = IN_USE
) -> Floats:
    """One row a text, one column for each of ``Weights``."""
    matches = [query.matches(text.counts, text.length) for text in texts]
    shares = np.array([query.coverage(match) for match in matches])
    semantic = [text.semantic for text in texts]
    near = np.array([0.0 if value is None else log_odds(value) for value in semantic])
    fused = np.array(
        [
            fused_log_odds(query.relevance(text.counts, text.length), text.semantic, constants)
            for text in texts
        ]
    )
    as_much = len(texts) - np.searchsorted(np.sort(shares), shares * _AS_MUCH)
    asks = Kind.SOUGHT in query.kinds
    answers = np.array([_answers(query, match) for match in matches], dtype=float)
    known = np.array([value is not None for value in semantic])
    columns = [
        np.ones(len(texts)),
        fused,
        np.minimum(fused.max(initial=-60.0) - fused, FARTHEST),
        np.log1p(as_much),
        np.array([query.held(match, {Kind.NAME}) for match in matches]),
        np.array([query.held(match, TELLING) for match in matches]),
        np.minimum(near[known].max(initial=-60.0) - near, FARTHEST) * known,
        answers,
        asks - answers,
    ]
    return np.stack(columns, axis=1)


def chances(
    query: LexicalQuery,
    texts: Sequence[Evidence],
    *,
    weights: Weights = IN_OFFICE,
    constants: Constants = IN_USE,
) -> list[float]:
    """For each text the chance that it is relevant to the question, in [0, 1]. All texts of the
    scope that may be relevant belong into ``texts``."""
    if not texts:
        return []
    features = features_of(query, texts, constants)
    total = mixed(query, features, weights)
    found: list[float] = (query.substance / (1 + np.exp(-np.clip(total, -60, 60)))).tolist()
    return found


def mixed(query: LexicalQuery, features: Floats, weights: Weights) -> Floats:
    """The log-odds of each text: the weighed sum of its evidence, as far as the question is
    specific, and for the rest those of its words and vector by themselves."""
    specific = specific_share(query)
    total: Floats = features @ np.array(astuple(weights)) * specific
    return total + by_itself(features) * (1 - specific)


def by_itself(features: Floats) -> Floats:
    """The log-odds of each text for a question for a name: those of its words and vector, less
    the further it is behind the best ("Dana Levi" is named there, and only "Dana" here)."""
    own: Floats = features[:, FUSED] + BEHIND_ALONE * features[:, BEHIND]
    return own


def specific_share(query: LexicalQuery) -> float:
    """How far the question is for something in particular, in [0, 1]."""
    return 1 - math.exp(-query.specific * math.log(2) / HALF_SPECIFIC)


def _answers(query: LexicalQuery, matches: Sequence[float]) -> bool:
    """Whether the text has the kind of answer that is asked for."""
    kinds = zip(query.kinds, matches, strict=True)
    return any(kind is Kind.SOUGHT and match > 0 for kind, match in kinds)
