"""The relevance of texts to a question: by the words that they share, and by their vectors. Pure.

A text's own cosine says little by itself: with one question all texts of a business are near, with
another none. So the score also compares it with the others: whether it leads them, and how far it
is behind the best. The weights are fitted by ``benchmarks/fit_relevance.py``: see docs/recall.md.

All texts are scored at once. Arrays have one row for each text.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.query import ASKING, QueryTerm
from memoryproject.foundation.text.tokenizer import Kind

Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class KindPrior:
    """The prior of a kind of words.

    ``gain`` scales the information of a word of this kind, ``share`` is the share of texts expected
    to hold it.
    """

    gain: float
    share: float


PRIORS = {
    Kind.FUNCTION: KindPrior(gain=0.03, share=0.3),
    Kind.VAGUE: KindPrior(gain=0.2, share=0.1),
    Kind.COMMON: KindPrior(gain=0.8, share=0.02),
    Kind.PLAIN: KindPrior(gain=1.0, share=0.005),
    Kind.NAME: KindPrior(gain=1.25, share=0.002),
}
# The number of texts that the prior of a word's rarity is worth.
PRIOR_TEXTS = 20.0
# With about this much information a question asks for something: "ok, thanks" has less.
ENOUGH_INFORMATION = 1.0
# The value of an answer to one question of a message, compared with one to all of it.
PART_WORTH = 0.95
# The cosine of a text without a vector.
UNKNOWN = 0.0
# The cosine of the best of many texts on other topics: a lead over worse ones tells nothing. Among
# few it is still less surprising to lead: this is added for one, and a share of it for more. With
# more than this, people of whom one or two facts are known hear of none.
UNRELATED = 0.1
UNRELATED_OF_ONE = 0.07
# A greater lead doesn't count further.
MAX_LEAD = 0.3
# So many texts may lead together, each further one with less.
LEADING = 4
SHARED_LEAD = 0.6
# A question that is still more usual tells no more. Most of the default embedder's are so usual as
# the second says; those of others are taken for such.
MAX_USUAL, MOSTLY_USUAL = 0.02, -0.012


@dataclass(frozen=True)
class WeighedWords:
    """The words of a question with the information of each, in nats.

    ``substance``: from 0 to 1, whether the question asks for anything.
    """

    terms: Sequence[QueryTerm]
    weights: Floats
    substance: float

    @property
    def information(self) -> float:
        """The information of all words, in nats."""
        return float(self.weights.sum())

    @property
    def only_name(self) -> bool:
        """Return whether the question names something, and asks for nothing specific about it."""
        kinds = [term.kind for term in self.terms]
        informative = sum(kind in (Kind.PLAIN, Kind.COMMON) for kind in kinds)
        asks = Kind.NAME in kinds or any(term.word in ASKING for term in self.terms)
        return not informative or (informative == 1 and not asks)

    def held_by(self, texts: Sequence[Collection[str]]) -> Mask:
        """Return which text, given by its index terms, holds which word: one column for each."""
        places: dict[str, list[int]] = {}
        for place, term in enumerate(self.terms):
            for form in term.forms:
                places.setdefault(form, []).append(place)
        found = [
            (row, place)
            for row, forms in enumerate(texts)
            for form in forms
            for place in places.get(form, ())
        ]
        held = np.zeros((len(texts), len(self.terms)), bool)
        if found:
            held[tuple(np.array(found).T)] = True
        return held

    def shares(self, held: Mask) -> Floats:
        """Return the share of the question's information that each text holds, in [0, 1]."""
        if not self.information:
            return np.zeros(len(held))
        # Not a product of matrices, whose last bit depends on the row.
        found: Floats = (held * self.weights).sum(axis=1) / self.information
        return found

    def unnamed(self, held: Mask) -> Floats:
        """Return the share of the question's names that each text lacks, in [0, 1]."""
        names = np.array([term.kind is Kind.NAME for term in self.terms], bool)
        if not names.any():
            return np.zeros(len(held))
        found: Floats = (~held[:, names]).mean(axis=1)
        return found


def weigh_words(terms: Sequence[QueryTerm], sample: Sequence[Collection[str]]) -> WeighedWords:
    """Return the words with their information: by their kind, and by their rarity in a sample.

    The rarity is a Bayesian estimate with a prior, -log((df + m * prior) / (n + m)), so that it
    means the same among one text as among a million.
    """
    counts = frequencies(terms, sample)
    weights = np.zeros(len(terms))
    information = 0.0
    for place, (term, count) in enumerate(zip(terms, counts, strict=True)):
        prior = PRIORS[term.kind]
        expected = (max(count, 1) + PRIOR_TEXTS * prior.share) / (len(sample) + PRIOR_TEXTS)
        weights[place] = prior.gain * -math.log(min(expected, 1.0))
        information += prior.gain * -math.log(prior.share)
    return WeighedWords(terms, weights, 1 - math.exp(-information / ENOUGH_INFORMATION))


def frequencies(terms: Sequence[QueryTerm], sample: Iterable[Collection[str]]) -> list[int]:
    """Return how many texts of the sample hold each word."""
    held = [set(forms) for forms in sample]
    return [sum(not forms.isdisjoint(term.forms) for forms in held) for term in terms]


@dataclass(frozen=True)
class Weights:
    """The weight of each kind of evidence, in log-odds a unit.

    ``offset``: the constant. ``near``: the cosine. ``lead``: how far the best texts, if it is one
    of them, are ahead of the next. ``behind``: how far it is behind the best. ``share``: the share
    of the question's words that it holds. ``unnamed``: the share of the question's names that it
    lacks. ``information``: that of the question, in nats: "and the price?" may mean anything.
    ``usual``: how near the question is to the facts of any business: those for prices are near to
    few of them, and to the prices of other things.
    """

    offset: float
    near: float
    lead: float
    behind: float
    share: float
    unnamed: float
    information: float
    usual: float = 0.0


# Fitted by benchmarks/fit_relevance.py, rounded: with a vector, and by words alone.
WITH_VECTORS = Weights(
    offset=-1.7,
    near=6.43,
    lead=16.97,
    behind=-10.1,
    share=1.3,
    unnamed=-1.9,
    information=-0.002,
    usual=12.23,
)
BY_WORDS = Weights(
    offset=-3.1, near=0.0, lead=0.0, behind=0.0, share=6.4, unnamed=-1.0, information=0.026
)
# "What do we know about Zeta?" has no best answer: each text counts by itself.
OF_NAME = Weights(
    offset=-3.16, near=2.55, lead=0.0, behind=0.0, share=5.4, unnamed=0.0, information=0.026
)


def features_of(
    cosines: Floats, held: Mask, words: WeighedWords, *, usual: float = MOSTLY_USUAL
) -> Floats:
    """Return one row for each text, with one column for each of ``Weights``.

    cosines: NaN for a text without a vector. held: which text holds which of the words.
    """
    known = np.where(np.isnan(cosines), UNKNOWN, cosines)
    columns = [
        np.ones(len(known)),
        known,
        _leads(known),
        known.max() - known,
        words.shares(held),
        words.unnamed(held),
        np.full(len(known), words.information),
        np.full(len(known), min(usual, MAX_USUAL)),
    ]
    return np.stack(columns, axis=1)


def _leads(cosines: Floats) -> Floats:
    """Return how far each text leads: those before the widest gap among the best."""
    order = np.argsort(-cosines, kind="stable")
    floor = UNRELATED + UNRELATED_OF_ONE / len(cosines)
    best = np.maximum(np.append(cosines[order[: LEADING + 1]], floor), floor)[: LEADING + 1]
    gaps = -np.diff(best) * SHARED_LEAD ** np.arange(len(best) - 1)
    widest = int(gaps.argmax())
    leads = np.zeros(len(cosines))
    leads[order[: widest + 1]] = min(float(gaps[widest]), MAX_LEAD)
    return leads


def chances(
    cosines: Floats, held: Mask, words: WeighedWords, *, usual: float = MOSTLY_USUAL
) -> Floats:
    """Return for each text the probability that it is relevant to the question, in [0, 1].

    See ``features_of``.
    """
    if not len(cosines):
        return np.zeros(0)
    features = features_of(cosines, held, words, usual=usual)
    by_words = probabilities(features @ np.array(astuple(BY_WORDS)))
    with_vectors = probabilities(features @ np.array(astuple(WITH_VECTORS)))
    found: Floats = np.where(np.isnan(cosines), by_words, with_vectors)
    if words.only_name:
        of_name = probabilities(features @ np.array(astuple(OF_NAME)))
        # A name that no text holds is somebody else's.
        named = any(term.kind is Kind.NAME for term in words.terms)
        found = of_name if named else np.maximum(found, of_name)
    return words.substance * found


def probabilities(odds: Floats) -> Floats:
    """Return the probabilities that log-odds express."""
    found: Floats = 1 / (1 + np.exp(-np.clip(odds, -60, 60)))
    return found
