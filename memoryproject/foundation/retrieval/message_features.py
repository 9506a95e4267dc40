"""The relevance of a message, judged together with the messages around it. Pure.

A line of a conversation seldom names its own topic: "It's a mix of drama and romance!" answers a
question two lines above. So the features include the vector of the line, the words and the vectors
of the lines around it, its speaker and its time.

The weights and the curve are fitted by ``benchmarks/fit_message_features.py`` on conversations
with labelled questions; docs/recall.md describes the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.query import (
    ASKING,
    QueryTerm,
    is_informative,
    query_terms,
)
from memoryproject.foundation.retrieval.relevance import (
    Floats,
    Mask,
    WeighedWords,
    probabilities,
)
from memoryproject.foundation.retrieval.subqueries import (
    COMPARED_LENGTH,
    asks,
    only_asks,
    unquoted,
)
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import Kind, tokenize

Numbers: TypeAlias = NDArray[np.int64]

# Words of lines this far away count as the line's own. Vectors reach further; each line counts less
# than the one before it.
WINDOW = 2
REACH, DECAY = 4, 0.6
# A line without a vector is scored like a line about another topic.
UNKNOWN = -2.0

_WORD = re.compile(r"\w+")
_MARKS_AROUND = re.compile(r"^\W+|\W+$")
_SPEAKER = re.compile(r"\s*([^\W\d_][^\n:]{0,39}):\s")


@dataclass(frozen=True)
class Weights:
    """The weight of each kind of evidence, in log-odds a unit.

    own: the share of the question's words that the line holds. together: that the line and those
    around it hold. topic: the closeness of its vector, in log-odds. topic_around: of the vectors
    around it. speaker: the question names its speaker. period: its date is in the period that the
    question names. asks: it is a question itself.
    """

    own: float
    together: float
    topic: float
    topic_around: float
    speaker: float
    period: float
    asks: float


@dataclass(frozen=True)
class Scorer:
    """Weights, and the logistic curve that makes probabilities of their sums."""

    weights: Weights
    slope: float
    offset: float

    def evidence(self, features: Floats) -> Floats:
        """Return the weighted sum of each row, which ranks the lines."""
        total: Floats = features @ np.array(astuple(self.weights))
        return total

    def chances(self, features: Floats) -> Floats:
        """Return for each row the probability that its line answers the question, in [0, 1]."""
        return probabilities(self.slope * self.evidence(features) + self.offset)


# Both fitted by benchmarks/fit_message_features.py, rounded.
WITH_VECTORS = Scorer(
    Weights(
        own=0.51,
        together=5.04,
        topic=1.08,
        topic_around=1.2,
        speaker=2.52,
        period=4.5,
        asks=-0.85,
    ),
    slope=0.593,
    offset=-4.63,
)
# Without a vector of the question or of the line.
BY_WORDS = Scorer(
    Weights(
        own=3.09,
        together=6.66,
        topic=0.0,
        topic_around=0.0,
        speaker=2.31,
        period=4.42,
        asks=-0.83,
    ),
    slope=0.582,
    offset=-4.85,
)
# A line that holds so much of the question answers it, however much else a long text says.
WHOLE_SHARE = 0.9

# A word in a larger share of the lines than this says nothing about the topic of one of them, above
# all the names of the speakers. In a few lines no word counts as everyday.
EVERYDAY_SHARE = 0.15
FEW_LINES = 60

# In a group the assistant's lines have no speaker, and so up to half of all.
SPEAKING_SHARE = 0.3

NAMES = tuple(Weights.__dataclass_fields__)


@dataclass(frozen=True)
class Lines:
    """Lines of a conversation as evidence for one question, in rows.

    They are in the order in which they were sent, those of one segment together. held: which words
    of the question each holds. topics: the log-odds of each vector being about the question's
    topic, NaN without a vector (if the question itself has none, no line has). segments: lines of
    one segment are adjacent in one conversation. speakers: the name of each, "" for none.
    period_fits: see ``best_fit``. ask: it ends with a question mark.
    """

    held: Mask
    topics: Floats
    segments: Numbers
    speakers: Sequence[str]
    period_fits: Floats
    ask: Sequence[bool]

    def __len__(self) -> int:
        return len(self.segments)


def features_of(question: str, words: WeighedWords, lines: Lines) -> Floats:
    """Return one row for each line, with one column for each of ``NAMES``."""
    topic = np.where(np.isnan(lines.topics), UNKNOWN, lines.topics)
    columns = [
        words.shares(lines.held),
        words.shares(_held_around(lines.held, lines.segments)),
        topic,
        _around(1 / (1 + np.exp(-topic)), lines.segments),
        _by_asked_speaker(question, lines.speakers),
        lines.period_fits,
        np.array(lines.ask, float),
    ]
    return np.stack(columns, axis=1)


def chances(features: Floats, *, compared: Mask) -> Floats:
    """Return the probability of each line; ``compared``: it and the question have a vector."""
    by_words = BY_WORDS.chances(features)
    with_vectors = WITH_VECTORS.chances(features)
    whole = features[:, NAMES.index("own")] >= WHOLE_SHARE
    best = np.where(whole, np.maximum(with_vectors, by_words), with_vectors)
    found: Floats = np.where(compared, best, by_words)
    return found
