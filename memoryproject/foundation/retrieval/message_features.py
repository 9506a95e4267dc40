"""The relevance of a message, judged together with the messages around it. Pure.

A line of a conversation seldom names its own topic: "It's a mix of drama and romance!" answers a
question two lines above. So the features include the vector of the line, the words and the vectors
of the lines around it, its speaker and its time.

The weights and the curve are fitted by ``benchmarks/fit_message_features.py`` on conversations
with labelled questions; docs/recall.md describes the data.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memoryproject.foundation.retrieval.query import ASKING, QueryTerm, is_informative, query_terms
from memoryproject.foundation.retrieval.relevance import Floats, Mask, WeighedWords, probabilities
from memoryproject.foundation.retrieval.subqueries import COMPARED_LENGTH, asks, only_asks, unquoted
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.tokenizer import UNSPACED, Kind, tokenize

Numbers: TypeAlias = NDArray[np.int64]

# Words of lines this far away count as the line's own. Vectors reach further; each line counts less
# than the one before it.
WINDOW = 2
REACH, DECAY = 4, 0.6
# A line without a vector is scored like a line about another topic.
UNKNOWN = -2.0

_WORD = re.compile(r"\w+")
# Scripts without spaces are counted by characters.
_SAID = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
# A word within a sentence, where a capital says that it is a name, or a digit.
_WITHIN = re.compile(r"(?<=[\w,] )[^\W\d_]\w+|\d")
_MARKS_AROUND = re.compile(r"^\W+|\W+$")
_SPEAKER = re.compile(r"\s*([^\W\d_][^\n:]{0,39}):\s")


@dataclass(frozen=True)
class Weights:
    """The weight of each kind of evidence, in log-odds a unit.

    own: the share of the question's words that the line holds. together: that the line and those
    around it hold. topic: the closeness of its vector, in log-odds. topic_around: of the vectors
    around it. speaker: the question names its speaker. period: its date is in the period that the
    question names. asks: it is a question itself. specific: it holds a name or a number. news: the
    logarithm of one more than the number of words that its speaker didn't say before.
    """

    own: float
    together: float
    topic: float
    topic_around: float
    speaker: float
    period: float
    asks: float
    specific: float
    news: float


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
        own=0.41,
        together=4.99,
        topic=1.05,
        topic_around=1.24,
        speaker=2.67,
        period=4.71,
        asks=-0.68,
        specific=0.72,
        news=0.42,
    ),
    slope=0.546,
    offset=-4.15,
)
# Without a vector of the question or of the line.
BY_WORDS = Scorer(
    Weights(
        own=2.89,
        together=6.75,
        topic=0.0,
        topic_around=0.0,
        speaker=2.61,
        period=4.82,
        asks=-0.75,
        specific=0.81,
        news=0.35,
    ),
    slope=0.567,
    offset=-5.25,
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
    period_fits: see ``best_fit``. statements: see ``statements_of``.
    """

    held: Mask
    topics: Floats
    segments: Numbers
    speakers: Sequence[str]
    period_fits: Floats
    statements: Floats

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
        *lines.statements.T,
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


def everyday_words(terms: Sequence[QueryTerm], counts: Sequence[int], lines: int) -> set[str]:
    """Return the informative words of a question that occur everywhere in a conversation.

    ``counts`` gives the number of lines with each word, among so many ``lines``.
    """
    return {
        term.word
        for term, count in zip(terms, counts, strict=True)
        if term.kind in (Kind.NAME, Kind.PLAIN) and count > EVERYDAY_SHARE * max(lines, FEW_LINES)
    }


def ends_as_question(text: str) -> bool:
    """Return whether the text ends with a question mark."""
    return text.rstrip().endswith(("?", "؟", "？"))


def statements_of(texts: Sequence[str], voices: Sequence[str]) -> Floats:
    """Return one row for each text: whether it asks, whether it is specific, and its news.

    They are in the order in which they were said. voices: who said each.
    """
    asking = np.array([ends_as_question(text) for text in texts], float)
    return np.stack([asking, hold_specifics(texts, voices), count_news(texts, voices)], axis=1)


def count_news(texts: Iterable[str], speakers: Iterable[str]) -> Floats:
    """Return for each text log(1 + n), where n of its words are in no earlier one of its speaker.

    In a talk a fact is new once, and what surrounds it ("Thanks, that's great!") is said often.
    """
    earlier: dict[str, set[str]] = defaultdict(set)
    news = []
    for text, speaker in zip(texts, speakers, strict=True):
        new = {*_SAID.findall(text.casefold())} - earlier[speaker]
        earlier[speaker] |= new
        news.append(len(new))
    return np.log1p(np.array(news, float))


def hold_specifics(texts: Sequence[str], speakers: Iterable[str]) -> Floats:
    """Return 1.0 for texts with a number or a name that isn't a speaker's, and 0.0 for others.

    Scripts without capitals don't show names: 0.5 for a text in one of them that has no number.
    """
    people = {word for name in set(speakers) for word in _WORD.findall(name.casefold())}
    return np.array([_specific(text, people) for text in texts], float)


def _specific(text: str, people: set[str]) -> float:
    for word in _WITHIN.findall(text):
        if word[0].isdigit() or (word[0].isupper() and word.casefold() not in people):
            return 1.0
    return 0.5 if text.upper() == text.lower() else 0.0


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


def _held_around(held: Mask, segments: Numbers) -> Mask:
    """Return for each line and word whether the line or one within ``WINDOW`` holds it."""
    best = held.copy()
    for step in range(1, min(WINDOW + 1, len(segments))):
        same = (segments[step:] == segments[:-step])[:, None]
        best[step:] |= held[:-step] & same
        best[:-step] |= held[step:] & same
    return best


def _by_asked_speaker(question: str, speakers: Sequence[str]) -> Floats:
    """Return 1.0 for the lines whose speaker the question may ask about.

    The question names the line's speaker and no other one, or it doesn't ask for one speaker at
    all. Where few lines have a speaker, those are labels, such as "Rent: 4500".
    """
    names = [_bare(name) for name in speakers]
    if sum(map(bool, names)) <= SPEAKING_SHARE * len(names):
        return np.ones(len(names))
    words = {_bare(word) for word in question.split()} | {*_WORD.findall(question.casefold())}
    named = {name for name in names if name and _bare(name.split()[0]) in words}
    if len(named) != 1:
        return np.ones(len(names))
    return np.array([float(name in named) for name in names])


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

    @staticmethod
    def key_of(text: str) -> Said:
        """Return a key that is the same for copies of a text."""
        return "", _written(text)

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
        # First what takes least: most lines ask nothing.
        if not asks(text):
            return False
        ours, theirs = self._query_words, frozenset(_words(text))
        shared = len(ours & theirs) / max(len(ours | theirs), 1)
        if _numbers(ours) != _numbers(theirs) or _asked_in(text) != self._asked:
            return False
        # "Please remind me" adds nothing to a question.
        return shared >= SAME_QUESTION or bool(self._asked) and only_asks(text)

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
