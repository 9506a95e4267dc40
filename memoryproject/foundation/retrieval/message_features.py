"""The relevance of a message, judged together with the messages around it.

A line of a conversation seldom names its own topic: "It's a mix of drama and romance!" answers a
question two lines above. So the features include the line's own words and vector, those of the
lines around it, its speaker, its time, and whether it states or asks.

The weights and the curve are fitted by ``benchmarks/fit_message_features.py`` on conversations
with labelled questions; docs/recall.md describes the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.query import (
    ASKING,
    LexicalQuery,
    QueryTerm,
    is_informative,
    query_terms,
)
from memoryproject.foundation.retrieval.reranking import (
    CountedTexts,
    Floats,
    array_of,
    match_matrix,
    probabilities,
    weighted_sum,
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
Mask: TypeAlias = NDArray[np.bool_]

# Words of lines this far away count as the line's own. Vectors reach further; each line counts less
# than the one before it.
WINDOW = 2
REACH, DECAY = 4, 0.6
# A line without a vector is scored like a line about another topic.
UNKNOWN = -2.0
# Scales the column to the size of the others.
NATS = 10.0

_TIME_WORDS = frozenset(
    [
        "yesterday",
        "today",
        "tonight",
        "last",
        "next",
        "ago",
        "week",
        "weekend",
        "month",
        "year",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "recently",
        "just",
        "tomorrow",
    ]
)
_TIME_NUMBERS = re.compile(r"\b\d{4}\b|\d{1,2}[./]\d{1,2}")
_HEBREW_TIME = re.compile(r"אתמול|היום|מחר|שעבר|שעברה|הבא|הבאה|לפני|שבוע|חודש|שנה|יום")
_ASKS_TIME = re.compile(
    r"^\s*when\b|\bwhat (?:year|month|day|date|time)\b|\bhow long\b|(?<!\w)(?:מתי|כמה זמן)(?!\w)"
    r"|באיזה (?:יום|תאריך)|באיזו (?:שנה|שעה)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_MARKS_AROUND = re.compile(r"^\W+|\W+$")
_SPEAKER = re.compile(r"\s*([^\W\d_][^\n:]{0,39}):\s")


@dataclass(frozen=True)
class Weights:
    """The weight of each kind of evidence, in log-odds a unit.

    words: the information of the question's words that the line holds. together: the share of the
    question that it and the lines around it hold. topic: the closeness of its vector, in log-odds.
    topic_around: the closeness of the vectors around it. speaker: the question names its speaker.
    asks: it is a question itself. length: the logarithm of its length. time: it states a time and
    the question asks for one. period: its date is in the period that the question names.
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
    """Converts a sum of evidence into the probability that the line answers the question."""

    slope: float
    offset: float

    def chances(self, totals: Floats) -> Floats:
        """Return the probabilities, each in [0, 1]."""
        return probabilities(self.slope * totals + self.offset)


@dataclass(frozen=True)
class Scorer:
    """Weights with the curve that was fitted for them."""

    weights: Weights
    curve: Curve

    def evidence(self, features: Floats) -> Floats:
        """Return the weighted sum of each row, which ranks the lines."""
        total: Floats = features @ array_of(self.weights)
        return total

    def chances(self, features: Floats) -> Floats:
        """Return for each row the probability that its line answers the question, in [0, 1]."""
        return self.curve.chances(self.evidence(features))


# Both fitted by benchmarks/fit_message_features.py, rounded.
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
# For a question in a language that the embedder doesn't support.
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

    They are in the order in which they were sent, those of one segment together. words: the index
    terms that the question asks for. topics: the log-odds of each vector being about the question's
    topic, NaN without a vector (if the question itself has none, no line has). segments: lines of
    one segment are adjacent in one conversation. ask: it is a question itself. tell_time: it names
    a time. speakers: of each, with the name's first word, as ``speaker_hashes`` returns them, in
    two columns. period_fits: see ``best_fit``.
    """

    words: CountedTexts
    topics: Floats
    segments: Numbers
    ask: Mask
    tell_time: Mask
    speakers: Numbers
    period_fits: Floats

    def __len__(self) -> int:
        return len(self.segments)


def ends_as_question(text: str) -> bool:
    """Return whether the text ends with a question mark."""
    return text.rstrip().endswith(("?", "؟", "？"))


def tells_time(text: str) -> bool:
    """Return whether the text names a time, such as "yesterday"."""
    # Words are looked up in a set: a regular expression with all of them takes ten times as long.
    return (
        not _TIME_WORDS.isdisjoint(_WORD.findall(text.lower()))
        or bool(_TIME_NUMBERS.search(text))
        or (not text.isascii() and bool(_HEBREW_TIME.search(text)))
    )


def speaker_hashes(name: str) -> tuple[int, int]:
    """Return the hashes of a speaker's name and of its first word; 0 for no name.

    They differ between processes.
    """
    first = _bare(name.split()[0]) if name.strip() else ""
    return (hash(name), hash(first)) if first else (0, 0)


def features_of(question: str, query: LexicalQuery, lines: Lines) -> Floats:
    """Return one row for each line, with one column for each of ``NAMES``."""
    segments = lines.segments
    matches = match_matrix(query, lines.words)
    topic = np.where(np.isnan(lines.topics), UNKNOWN, lines.topics)
    asks_time = bool(_ASKS_TIME.search(question))
    columns = [
        weighted_sum(query, matches) / NATS,
        weighted_sum(query, _features_around(matches > 0, segments)) / (query.total or 1.0),
        topic,
        _around(1 / (1 + np.exp(-topic)), segments),
        _by_asked_speaker(question, lines.speakers),
        lines.ask.astype(float),
        np.log1p(lines.words.lengths),
        (lines.tell_time & asks_time).astype(float),
        lines.period_fits,
    ]
    return np.stack(columns, axis=1)


def everyday_words(terms: Sequence[QueryTerm], frequencies: Sequence[int], lines: int) -> set[str]:
    """Return the informative words of a question that occur everywhere in a conversation.

    ``lines`` is the length of the conversation; ``frequencies`` gives the number of lines with each
    word.
    """
    return {
        term.word
        for term, frequency in zip(terms, frequencies, strict=True)
        if term.kind in (Kind.NAME, Kind.PLAIN)
        and frequency > EVERYDAY_SHARE * max(lines, FEW_LINES)
    }


def speaker_named(text: str) -> str:
    """Return the speaker that a line names at its start ("Dana: hello"), "" if it names none."""
    found = _SPEAKER.match(text)
    return found[1].strip() if found else ""


def _around(values: Floats, segments: Numbers) -> Floats:
    """Return for each line the sum of the values around it, which count less with every step."""
    total = np.zeros_like(values)
    for step in range(1, min(REACH + 1, len(values))):
        worth = (segments[step:] == segments[:-step]) * DECAY**step
        total[step:] += values[:-step] * worth
        total[:-step] += values[step:] * worth
    return total


def _features_around(held: Mask, segments: Numbers) -> Mask:
    """Return for each word and line whether the line or one within ``WINDOW`` holds it."""
    best = held.copy()
    for step in range(1, min(WINDOW + 1, len(segments))):
        same = segments[step:] == segments[:-step]
        best[:, step:] |= held[:, :-step] & same
        best[:, :-step] |= held[:, step:] & same
    return best


def _by_asked_speaker(question: str, speakers: Numbers) -> Floats:
    """Return 1.0 for the lines whose speaker the question may ask about.

    The question names the line's speaker and no other one, or it doesn't ask for one speaker at
    all. Where few lines have a speaker, those are labels, such as "Rent: 4500".
    """
    if np.count_nonzero(speakers[:, 0]) <= SPEAKING_SHARE * len(speakers):
        return np.ones(len(speakers))
    words = {_bare(word) for word in question.split()} | {*_WORD.findall(question.casefold())}
    names, first = np.ascontiguousarray(speakers.T)
    hashes = np.array([hash(word) for word in words if word], np.int64)
    named = names[(first == hashes[:, None]).any(axis=0) & (names != 0)]
    if not len(named) or (named != named[0]).any():
        return np.ones(len(speakers))
    return (names == named[0]).astype(float)


def _bare(word: str) -> str:
    """Return the word without marks around it, and without case."""
    return _MARKS_AROUND.sub("", word).casefold()


# Questions that have so many of their words in common ask for the same.
SAME_QUESTION = 0.75


Said: TypeAlias = tuple[str, tuple[str, ...]]


class DistinctTexts:
    """Tells which texts say something that the question and the texts before them don't say.

    A question that was asked before tells nothing: it repeats the query. The answers that were
    given then do. The same words of two ``speaker``s are two texts.
    """

    def __init__(self, query: str = "") -> None:
        self._query = query
        self._query_words = frozenset(_words(query))
        self._seen: set[Said] = set()
        self._quoted: set[Said] = set()

    @property
    def most_lacking(self) -> float:
        """The number of the query's words that a text that repeats it may lack."""
        return (1 - SAME_QUESTION) * len(self._query_words)

    def is_new(self, text: str, *, speaker: str = "") -> bool:
        """Return whether no text before says the same; from then on it is known."""
        words, quoted = _said(text, speaker)
        if self._knows(words, quoted):
            return False
        self._seen.add(words)
        if quoted != words:
            self._quoted.add(quoted)
        return True

    def holds(self, text: str, *, speaker: str = "") -> bool:
        """Return whether the text is one of those that were new."""
        return bool(self._seen) and self._knows(*_said(text, speaker))

    def _knows(self, words: Said, quoted: Said) -> bool:
        return words in self._seen or words in self._quoted or quoted in self._seen

    def repeats_query(self, text: str) -> bool:
        """Return whether the text asks what the query asks, and says nothing else."""
        # A question is never much longer than its repetition.
        if len(text) > 2 * COMPARED_LENGTH:
            return False
        return any(self._is_same_question(each) for each in {text, unquoted(text)})

    def _is_same_question(self, text: str) -> bool:
        ours, theirs = self._query_words, frozenset(_words(text))
        shared = len(ours & theirs) / max(len(ours | theirs), 1)
        if _numbers(ours) != _numbers(theirs) or _asked_in(text) != self._asked:
            return False
        # "Please remind me" adds nothing to a question.
        return asks(text) if shared >= SAME_QUESTION else bool(self._asked) and only_asks(text)

    @cached_property
    def _asked(self) -> frozenset[str]:
        return _asked_in(self._query)


def _said(text: str, speaker: str) -> tuple[Said, Said]:
    """Return what the speaker says in the text, and what they quote, which may be the same."""
    words, quotation = _written(text), unquoted(text)
    quoted = words if quotation == text else _written(quotation)
    return (speaker, words), (speaker, quoted)


def _written(text: str) -> tuple[str, ...]:
    """Return the words in order, without regard to case, marks and punctuation.

    Unlike a tokenizer it distinguishes spellings of one number, and takes a tenth of the time.
    """
    return (*_WORD.findall(fold(text[:COMPARED_LENGTH])), *_length_of_long(text))


def _words(text: str) -> tuple[str, ...]:
    """Return the words in order, in the spelling in which they are indexed."""
    return (*(token.text for token in tokenize(text[:COMPARED_LENGTH])), *_length_of_long(text))


def _asked_in(question: str) -> frozenset[str]:
    """Return the words of a question that name its topic, and those that ask; none without a topic.

    Of a long question nothing is known.
    """
    if len(question) > COMPARED_LENGTH:
        return frozenset()
    terms = query_terms(question)
    topic = {term.word for term in terms if is_informative(term)}
    return frozenset(topic | {term.word for term in terms if term.word in ASKING} if topic else ())


def _length_of_long(text: str) -> tuple[str, ...]:
    return (str(len(text)),) if len(text) > COMPARED_LENGTH else ()


def _numbers(words: Iterable[str]) -> set[str]:
    return {word for word in words if any(character.isdigit() for character in word)}
