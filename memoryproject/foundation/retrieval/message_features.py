"""How relevant something said in a conversation is, judged with what was said around it.

A line of a conversation seldom says by itself what it is about: "It's a mix of drama and
romance!" answers a question two lines above. So beside its own words and vector count those of
the lines around it, who said it, when, and whether it tells or asks.

The weights and the curve are fitted by ``benchmarks/fit_context.py`` on conversations with
labelled questions; see docs/recall.md for what they were fitted on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.relevance import LexicalQuery
from memoryproject.foundation.text.kinds import Kind
from memoryproject.foundation.text.query import QueryTerm

Floats = NDArray[np.float64]
Numbers = NDArray[np.int_]

# Words of lines this far away count as the line's own; vectors reach further, each line
# counting less than the one before it.
WINDOW = 2
REACH, DECAY = 4, 0.6
# A line without a vector is judged like one about something else.
UNKNOWN = -2.0
# So that the column is of the others' size.
NATS = 10.0

_TELLS_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|last|next|ago|week|weekend|month|year|(?:mon|tues|wednes|thurs|"
    r"fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december|recently|just|tomorrow|\d{4})\b"
    r"|אתמול|היום|מחר|שעבר|שעברה|הבא|הבאה|לפני|שבוע|חודש|שנה|יום|\d{1,2}[./]\d{1,2}",
    re.IGNORECASE,
)
_ASKS_TIME = re.compile(
    r"^\s*when\b|\bwhat (?:year|month|day|date|time)\b|\bhow long\b|(?<!\w)(?:מתי|כמה זמן)(?!\w)"
    r"|באיזה (?:יום|תאריך)|באיזו (?:שנה|שעה)",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\s*([^\W\d_][^\n:]{0,39}):\s")


@dataclass(frozen=True)
class Weights:
    """What each kind of evidence counts, in log-odds a unit.

    words: the information of the question's words that the line holds. together: the share of
    the question that it and the lines around it hold. topic: how near its vector is, in
    log-odds. topic_around: how near those around it are. speaker: it is by whom the question
    names. asks: it is a question itself. length: the logarithm of its length. time: it tells a
    time and the question asks for one. period: it was said when the question says.
    """

    words: float
    together: float
    topic: float
    topic_around: float
    speaker: float
    asks: float
    length: float
    time: float
    period: float


@dataclass(frozen=True)
class Curve:
    """Turns a sum of evidence into the chance that the line answers the question."""

    slope: float
    offset: float

    def chances(self, totals: Floats) -> Floats:
        """Each in [0, 1]."""
        chances: Floats = 1 / (1 + np.exp(-np.clip(self.slope * totals + self.offset, -60, 60)))
        return chances


@dataclass(frozen=True)
class Scorer:
    """Weights with the curve that was fitted for them."""

    weights: Weights
    curve: Curve

    def evidence(self, features: Floats) -> Floats:
        """The weighed sum of each row: the order in which lines answer the question best."""
        total: Floats = features @ np.array(astuple(self.weights))
        return total

    def chances(self, features: Floats) -> Floats:
        """The chance of each row that its line answers the question, in [0, 1]."""
        return self.curve.chances(self.evidence(features))


# Both fitted by benchmarks/fit_context.py, rounded.
WITH_VECTORS = Scorer(
    Weights(
        words=1.02,
        together=5.5,
        topic=0.5,
        topic_around=1.99,
        speaker=2.63,
        asks=-0.94,
        length=0.42,
        time=1.97,
        period=5.04,
    ),
    Curve(slope=0.78, offset=-7.13),
)
# For a question in a language that the embedder doesn't know.
BY_WORDS = Scorer(
    Weights(
        words=2.11,
        together=7.14,
        topic=0.0,
        topic_around=0.0,
        speaker=2.63,
        asks=-0.8,
        length=0.38,
        time=1.87,
        period=5.1,
    ),
    Curve(slope=0.82, offset=-7.94),
)

# A word that more of the lines hold than this says nothing about what one of them is about:
# the names of those who talk, most of all. In a few lines nothing is everyday yet.
EVERYDAY_SHARE = 0.15
FEW_LINES = 60

NAMES = tuple(Weights.__dataclass_fields__)


@dataclass(frozen=True)
class Line:
    """A line as evidence for one question.

    counts: its index terms that the question asks for. length: in words. topic: the log-odds
    of its vector being about what is asked, None without a vector (where the question itself
    has none, no line has). segment: lines of one segment stand in one run of talk.
    period_fit: see ``periods.best_fit``.
    """

    text: str
    counts: Mapping[str, float]
    length: int
    topic: float | None
    segment: int
    speaker: str = ""
    period_fit: float = 0.0


def features_of(question: str, query: LexicalQuery, lines: Sequence[Line]) -> Floats:
    """One row a line, one column for each of ``NAMES``. Lines stand in the order in which they
    were said, those of one segment together."""
    segments = np.array([line.segment for line in lines])
    weights = np.array([weight for weight, _ in query.terms])
    matches = np.array([query.matches(line.counts, line.length) for line in lines])
    matches = matches.reshape(len(lines), len(weights))
    topic = np.array([UNKNOWN if line.topic is None else line.topic for line in lines])
    asks_time = bool(_ASKS_TIME.search(question))
    columns = [
        matches @ weights / NATS,
        _features_around(matches > 0, segments) @ weights / (query.total or 1.0),
        topic,
        _around(1 / (1 + np.exp(-topic)), segments),
        _by_asked_speaker(question, lines),
        np.array([line.text.rstrip().endswith("?") for line in lines], dtype=float),
        np.log1p([line.length for line in lines]),
        np.array([asks_time and bool(_TELLS_TIME.search(line.text)) for line in lines], float),
        np.array([line.period_fit for line in lines]),
    ]
    return np.stack(columns, axis=1)


def everyday_words(terms: Sequence[QueryTerm], frequencies: Sequence[int], lines: int) -> set[str]:
    """Of a question's words, the telling ones that are everywhere in a conversation of so many
    lines; ``frequencies`` says in how many each is."""
    return {
        term.word
        for term, frequency in zip(terms, frequencies, strict=True)
        if term.kind in (Kind.NAME, Kind.PLAIN)
        and frequency > EVERYDAY_SHARE * max(lines, FEW_LINES)
    }


def speaker_named(text: str) -> str:
    """Who a line says that it is from ("Dana: hello"), "" where it doesn't."""
    found = _SPEAKER.match(text)
    return found[1].strip() if found else ""


def _shifted(values: Floats, segments: Numbers, by: int) -> Floats:
    """Each line's value ``by`` lines before it (after it where negative), 0 outside its run."""
    moved = np.zeros_like(values)
    if abs(by) >= len(values):
        return moved
    here, there = slice(by, None), slice(None, -by)
    if by < 0:
        here, there = slice(None, by), slice(-by, None)
    same = segments[here] == segments[there]
    moved[here] = np.where(same if values.ndim == 1 else same[:, None], values[there], 0)
    return moved


def _around(values: Floats, segments: Numbers) -> Floats:
    """For each line the sum of what the lines around it have, less with every step."""
    total = np.zeros_like(values)
    for step in range(1, REACH + 1):
        beside = _shifted(values, segments, step) + _shifted(values, segments, -step)
        total += DECAY**step * beside
    return total


def _features_around(held: NDArray[np.bool_], segments: Numbers) -> Floats:
    """For each line and word 1.0 where the line or one within ``WINDOW`` holds it."""
    here = held.astype(float)
    best = here
    for step in range(1, WINDOW + 1):
        for by in (step, -step):
            best = np.maximum(best, _shifted(here, segments, by))
    return best


def _by_asked_speaker(question: str, lines: Sequence[Line]) -> Floats:
    """1.0 where the question names the line's speaker and nobody else who speaks, or doesn't
    ask for one speaker at all."""
    named = [
        name
        for name in {line.speaker for line in lines if line.speaker}
        if re.search(rf"(?<!\w){re.escape(name.split()[0])}(?!\w)", question, re.IGNORECASE)
    ]
    if len(named) != 1:
        return np.ones(len(lines))
    return np.array([line.speaker == named[0] for line in lines], dtype=float)
