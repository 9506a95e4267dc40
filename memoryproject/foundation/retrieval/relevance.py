"""The relevance of a text to a question by itself: by its words, and fused with its vector.

The lexical score is the share of the question's information that the text covers. A word carries
information by its kind (``text.kinds``) and by its rarity among the searched texts. The rarity is a
Bayesian estimate with a prior, so that it means the same with one text as with a million: -log((df
+ m * prior) / (n + m)). ``reranking`` scores the texts. The constants are chosen by
hand and checked against labelled pairs by ``benchmarks/calibrate_recall.py``: see docs/recall.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memoryproject.foundation.retrieval.query import QueryTerm
from memoryproject.foundation.text.tokenizer import Kind


@dataclass(frozen=True)
class KindPrior:
    """The prior of a kind of words.

    ``gain`` scales the information of a word of this kind, ``share`` is the share of texts expected
    to hold it, ``unknown`` how much it still counts if no searched text has it.
    """

    gain: float
    share: float
    unknown: float


PRIORS: Mapping[Kind, KindPrior] = {
    Kind.FUNCTION: KindPrior(gain=0.03, share=0.3, unknown=0.3),
    # Judged separately, see ``reranking``.
    Kind.SOUGHT: KindPrior(gain=0.0, share=0.2, unknown=0.3),
    Kind.VAGUE: KindPrior(gain=0.2, share=0.1, unknown=0.15),
    Kind.COMMON: KindPrior(gain=0.8, share=0.02, unknown=0.35),
    Kind.PLAIN: KindPrior(gain=1.0, share=0.005, unknown=0.9),
    Kind.NAME: KindPrior(gain=1.25, share=0.002, unknown=1.0),
}
# Words that ask for something specific; "what" and "מה" may not.
ASKING = frozenset(
    ("where", "who", "why", "when", "how", "which")
    + ("איפה", "היכנ", "מי", "למה", "מדוע", "מתי", "איכ", "איזה", "איזו")
)
# Kinds of words that a question may ask for besides names.
INFORMATIVE = frozenset({Kind.PLAIN, Kind.COMMON})


@dataclass(frozen=True)
class Constants:
    """The constants of the score; the defaults are those in use.

    ``prior_texts``: the number of texts that the prior of a word's rarity is worth. ``saturation``
    and ``length_effect``: k1 and b of BM25. ``even_coverage`` and ``coverage_slope``: the coverage
    at which a text is as likely relevant as not, and the steepness there. ``enough_information``:
    below about this much, a question ("ok, thanks") finds nothing. ``vector_weight``: the weight of
    the vector's log-odds next to those of the words. ``lowest_lexical``: how certain the words
    alone can be that a text is irrelevant. ``part_worth``: the value of an answer to one question
    of a message, compared with one to all of it.
    """

    priors: Mapping[Kind, KindPrior] = field(default_factory=lambda: PRIORS)
    prior_texts: float = 20.0
    saturation: float = 0.5
    length_effect: float = 0.3
    even_coverage: float = 0.38
    coverage_slope: float = 3.0
    enough_information: float = 1.0
    vector_weight: float = 0.5
    lowest_lexical: float = 0.02
    part_worth: float = 0.95


IN_USE = Constants()

# The assumed mean length of messages and notes, if too few are known.
_USUAL_LENGTH = 15.0
_USUAL_LENGTH_TEXTS = 10.0


@dataclass(frozen=True)
class Scope:
    """Statistics of the searched texts.

    How many there are, their mean length in words, and for each query term how many of them hold
    one of its alternatives.
    """

    texts: int
    average_length: float
    frequencies: Sequence[int]


@dataclass(frozen=True)
class LexicalQuery:
    """A question weighted for one scope.

    terms: the weight of each and its alternatives. kinds: of each. specific: the information that
    the question asks for besides its topic (names, or else its rarest word), as far as a text may
    be expected to hold it.
    """

    terms: Sequence[tuple[float, Sequence[tuple[str, float]]]]
    kinds: Sequence[Kind]
    specific: float
    total: float
    substance: float
    average_length: float
    constants: Constants

    def best_share(self, held: Sequence[bool]) -> float:
        """Return about the share of the question that a text with these terms can cover.

        ``held`` is parallel to ``terms``. For choosing candidates.
        """
        if self.total <= 0:
            return 0.0
        found = sum(weight for (weight, _), here in zip(self.terms, held, strict=True) if here)
        return min(1.0, found / self.total) * self.substance


def weigh_query(
    terms: Sequence[QueryTerm], scope: Scope, *, constants: Constants = IN_USE
) -> LexicalQuery:
    """Return ``terms`` weighted by the statistics of ``scope``.

    Raises ValueError when ``scope`` hasn't one frequency a term.
    """
    if len(scope.frequencies) != len(terms):
        raise ValueError("a scope needs one frequency for each query term")
    weighed = []
    total = information = 0.0
    informative = []
    for term, frequency in zip(terms, scope.frequencies, strict=True):
        prior = constants.priors[term.kind]
        weight = prior.gain * _surprise(frequency, scope.texts, prior.share, constants.prior_texts)
        information += prior.gain * -math.log(prior.share)
        expected = weight if frequency else weight * prior.unknown
        total += expected
        if term.kind in INFORMATIVE:
            informative.append(expected)
        weighed.append((weight, term.alternatives))
    if len(informative) == 1 and not any(_asks_something(term) for term in terms):
        # The question is about this one word and asks nothing about it.
        informative = []
    return LexicalQuery(
        terms=weighed,
        kinds=[term.kind for term in terms],
        specific=sum(informative),
        total=total,
        substance=1 - math.exp(-information / constants.enough_information),
        average_length=_smoothed_length(scope),
        constants=constants,
    )


def _asks_something(term: QueryTerm) -> bool:
    """Return whether the term makes a question with one topic word ask something about it."""
    return term.kind in (Kind.NAME, Kind.SOUGHT) or term.word in ASKING


def _surprise(frequency: int, texts: int, share: float, prior_texts: float) -> float:
    expected = (min(frequency, texts) + prior_texts * share) / (texts + prior_texts)
    return -math.log(expected)


def _smoothed_length(scope: Scope) -> float:
    words = scope.texts * scope.average_length + _USUAL_LENGTH_TEXTS * _USUAL_LENGTH
    return words / (scope.texts + _USUAL_LENGTH_TEXTS)
