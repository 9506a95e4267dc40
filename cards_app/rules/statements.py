"""Find the decisions and tasks in a conversation, by what is said before and after each sentence.

People agree in a few words on what was proposed before, and what they settle or promise is often
repeated in the next message. So each sentence has features: the kinds of phrases in it and in the
messages beside it, and what they share. An embedder adds what the sentence means, and the last
sentence that the other side said before it. ``judge.py`` weighs them. A sentence is a decision or a
task, not both.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cards_app.rules import phrases, session_data
from cards_app.rules.judge import (
    KINDS,
    Network,
    Weights,
    chances_by_phrases,
    stored_network,
    stored_weights,
)
from cards_app.rules.words import Sentence, is_question, split_sentences, split_words
from memoryproject.foundation.text.characters import fold

# A sentence is a decision or a task from this probability on.
MIN_PROBABILITY = {"decisions": 0.45, "todos": 0.45}
# The words of seed 001 are always one, as are plain words of agreement and plain requests.
OF_PLAIN_WORDS = 0.5
# Below that probability by the phrases alone, the meaning is not asked for: it takes milliseconds.
# It doubles with each so many texts of a session, so that a card is made within seconds, and the
# end of a long talk isn't judged by phrases alone.
MIN_EMBEDDED, DOUBLED_AFTER = 0.05, 75
PLAIN_WORDS = {"decisions": {"decides", "firm"}, "todos": {"todo", "reminds"}}
# So many letters of a word are compared: its forms differ at the end.
STEM, MIN_STEM = 6, 4
# Beside other things these are seen in the messages before and after.
SEEN_AROUND = frozenset(
    [
        "offers",
        "agrees",
        "settles",
        "promises",
        "requests",
        "defers",
        "reverses",
        "decides",
        "todo",
        "duties",
        "fulfils",
        "days",
    ]
)
# A decision that replaces another one is seldom further away from it.
MAX_KEPT = 40
# Messages that one side writes in a row are judged with the same ones before and after.
MAX_TURN = 8
SHORT, MEDIUM, MANY = 3, 15, 3
# "Perfect!" says nothing, "Perfect, a red kettle for you" what was agreed.
IN_FULL = 2

_NUMBER = re.compile(r"\d+")
_CLOCK = re.compile(r"\d{1,2}:\d\d")
# An answer to "can we move it?" of so many words is nothing but a yes.
BARE = 3

# Returns the vector of a passage by that embedder, or None if there is none now.
Meaning = Callable[[str], Sequence[float] | None]


@dataclass(frozen=True)
class Spoken:
    """A sentence with the kinds of phrases in it and the stems of its longer words and numbers."""

    sentence: Sentence
    marks: frozenset[str]
    content: frozenset[str]
    asks: bool
    # False for code, a quotation, or an address alone.
    says: bool = True


@dataclass(frozen=True)
class ReadMessage:
    """A message that was read. ``number``: its place among those with text, from 0."""

    number: int
    role: str
    text: str
    sentences: tuple[Spoken, ...]

    @property
    def side(self) -> str:
        return "assistant" if self.role == "assistant" else "user"

    @property
    def marks(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.marks for each in self.sentences))

    @property
    def content(self) -> frozenset[str]:
        return frozenset[str]().union(*(each.content for each in self.sentences))

    @property
    def agrees(self) -> bool:
        return bool(self.sentences) and "agrees" in self.sentences[0].marks

    @property
    def has_time(self) -> bool:
        return not self.marks.isdisjoint(("days", "times")) or bool(_CLOCK.search(self.text))


@dataclass(frozen=True)
class Found:
    """A decision or a task: its message, from the place of its sentence on."""

    message: ReadMessage
    spoken: Spoken
    probability: float
    # The assistant's message behind it that repeats it, or says it in full.
    confirmation: ReadMessage | None = None

    @property
    def text(self) -> str:
        return self.message.text[self.spoken.sentence.start :]

    @property
    def has_time(self) -> bool:
        return self.message.has_time or self.confirmation is not None and self.confirmation.has_time


def read_line(number: int, line: session_data.Line) -> ReadMessage:
    languages = phrases.languages_of(fold(line.content[:2_000]))
    quoted = phrases.quoted_places(line.content)
    sentences: list[Spoken] = []
    for sentence in split_sentences(line.content):
        end = sentence.start + len(sentence.text)
        inside = any(start <= sentence.start and end <= last for start, last in quoted)
        says = not inside and bool(phrases.words_said(sentence.text))
        marks = phrases.marks_of(sentence.text, languages) if says else frozenset[str]()
        content, asks = _content(sentence.text), is_question(sentence.text)
        sentences.append(Spoken(sentence, marks, content, asks, says))
    return ReadMessage(number, line.role, line.content, tuple(sentences))


def _content(text: str) -> frozenset[str]:
    stems = (fold(word)[:STEM] for word in split_words(text))
    return frozenset(_NUMBER.findall(text)) | {stem for stem in stems if len(stem) >= MIN_STEM}


class Statements:
    """The decisions and tasks of a conversation, which is told message by message.

    weights, network: to judge with others than those that are stored.
    """

    def __init__(
        self,
        meaning: Meaning | None = None,
        weights: Weights | None = None,
        network: Network | None = None,
    ) -> None:
        self._meaning = meaning
        self._weights = weights or stored_weights()
        self._network = network
        self._embedded = 0
        self._before: ReadMessage | None = None
        self._meaning_before: Sequence[float] | None = None
        self._turn: list[ReadMessage] = []
        self._answered: list[ReadMessage] = []
        self._found: dict[str, list[Found]] = {kind: [] for kind in KINDS}

    def add(self, message: ReadMessage) -> None:
        """Judge the turn before this message, when the other side answers it."""
        if self._turn and (self._turn[-1].side != message.side or len(self._turn) == MAX_TURN):
            self._judge(message)
        self._turn.append(message)

    def found(self) -> tuple[list[Found], list[Found]]:
        """Return the decisions and the tasks that hold at the end, in their order."""
        self._judge(None)
        return self._found["decisions"], self._found["todos"]

    def _judge(self, after: ReadMessage | None) -> None:
        for own in self._turn:
            if "takes_back" in own.marks:
                # "Scratch that", "kidding": whether or not the message settles something else.
                _withdraw(self._found["decisions"], own)
            moved = _moved(self._found["decisions"], own, self._answered)
            places = range(len(own.sentences))
            chances = [self._chances(place, own, after) for place in places]
            if moved is not None:
                sure = max(chances[moved].get("decisions", 0.0), OF_PLAIN_WORDS)
                chances[moved] = {"decisions": sure}
            for kind, found in self._found.items():
                of_kind = [each.get(kind, 0.0) for each in chances]
                new = _best_sentence(kind, own, of_kind, after)
                self._note(kind, found, new, replaces=moved is None)
        if self._turn:
            self._before, self._meaning_before = self._turn[-1], None
        self._turn, self._answered = [], self._turn

    def _note(self, kind: str, found: list[Found], new: Found | None, *, replaces: bool) -> None:
        if new is None:
            return
        marks = new.message.marks
        replaces &= "reverses" in marks and "takes_back" not in marks
        if kind == "decisions" and replaces:
            _withdraw(found, new.message)
        found.append(new)
        if len(found) > MAX_KEPT:
            found.remove(min(found[:-1], key=lambda each: each.probability))

    def _chances(self, place: int, own: ReadMessage, after: ReadMessage | None) -> dict[str, float]:
        """Return the probability of the kind that the sentence may be, if any: the likelier one."""
        spoken = own.sentences[place]
        found = features(place, own, self._before, after)
        kinds = [kind for kind in KINDS if not excluded(kind, spoken)]
        chances = chances_by_phrases(self._weights, found)
        least = MIN_EMBEDDED * 2 ** (self._embedded // DOUBLED_AFTER)
        if self._meaning and max((chances[kind] for kind in kinds), default=0.0) >= least:
            chances = self._by_meaning(place, own, found) or chances
        chances = {kind: chances[kind] for kind in kinds}
        likelier = max(chances.values(), default=0.0)
        chances = {kind: each for kind, each in chances.items() if each == likelier}
        for kind in kinds:
            if spoken.marks & PLAIN_WORDS[kind]:
                chances[kind] = max(chances.get(kind, 0.0), OF_PLAIN_WORDS)
        return chances

    def _by_meaning(
        self, place: int, own: ReadMessage, found: frozenset[str]
    ) -> dict[str, float] | None:
        """Return the probability of each kind; None if what the sentence means isn't known."""
        if self._meaning is None:
            return None
        self._embedded += 1
        vector = self._meaning(own.sentences[place].sentence.text)
        before = last_before(own, self._before)
        if vector is not None and before and self._meaning_before is None:
            self._embedded += 1
            self._meaning_before = self._meaning(before)
        if vector is None:
            return None
        self._network = self._network or stored_network()
        return self._network.chances(found, vector, self._meaning_before if before else None)


def last_before(own: ReadMessage, before: ReadMessage | None) -> str:
    """Return the last sentence that the other side said before a message; "" for none."""
    other = before is not None and before.side != own.side
    return before.sentences[-1].sentence.text if before and other and before.sentences else ""


def _best_sentence(
    kind: str, own: ReadMessage, chances: list[float], after: ReadMessage | None
) -> Found | None:
    """Return the message's surest sentence of this kind, if any; the first of equal ones.

    Probabilities are rounded, so that equally sure sentences stay in their order.
    """
    best: Found | None = None
    for spoken, chance in zip(own.sentences, chances, strict=True):
        rounded = round(chance, 1)
        if chance >= MIN_PROBABILITY[kind] and (best is None or rounded > best.probability):
            best = Found(own, spoken, rounded, _confirmation(spoken, own, after))
    return best


def _withdraw(found: list[Found], new: ReadMessage) -> None:
    """Remove the decision that a message replaces or takes back, with its confirmation.

    It is the one with most words in common, or else the last one. "Changed to Friday" leaves the
    message that it answers.
    """
    answered = new.number - (new.side == "assistant")
    earlier = [each for each in found if each.message.number < answered]
    if not earlier:
        return
    topic = new.content
    old = max(earlier, key=lambda each: (len(each.spoken.content & topic), each.message.number))
    for each in earlier:
        if abs(each.message.number - old.message.number) <= 1:
            found.remove(each)


def _moved(found: list[Found], own: ReadMessage, before: Sequence[ReadMessage]) -> int | None:
    """Remove the time that was moved, and return the place of the sentence that names the new one.

    The other side asked for another time just before ("can we push it to 16:00?"), and this message
    grants it: by a word, by what it repeats, or by a bare yes, which names nothing.
    """
    request = next((each for each in before if "moves" in each.marks), None)
    if request is None or request.side == own.side or own.marks & phrases.NOT_MOVED:
        return None
    topic = frozenset[str]().union(*(each.content for each in before))
    names = "moved" in own.marks or (own.agrees or "settles" in own.marks) and own.content & topic
    wishes = any(each.asks for each in request.sentences) or "requests" in request.marks
    is_yes = own.agrees and wishes and len(own.text.split()) <= BARE
    if any(each.asks for each in own.sentences) or not (names or is_yes):
        return None
    timed = [each for each in found if each.message.number < request.number and each.has_time]
    if not timed or not any(each.has_time for each in (*before, own)):
        return None
    topic |= own.content
    old = max(timed, key=lambda each: (len(each.spoken.content & topic), each.message.number))
    for each in timed:
        if abs(each.message.number - old.message.number) <= 1:
            found.remove(each)
    parts = enumerate(own.sentences)
    naming = (i for i, each in parts if "moved" in each.marks or each.content & topic)
    return next(naming, None) if names else None


def _confirmation(
    spoken: Spoken, own: ReadMessage, after: ReadMessage | None
) -> ReadMessage | None:
    if after is None or own.side == "assistant" or after.side == own.side:
        return None
    in_full = after.agrees and len(after.content) >= IN_FULL
    return after if in_full or spoken.content & after.content else None


def excluded(kind: str, spoken: Spoken) -> bool:
    """Return whether a sentence is none of this kind, whatever else speaks for it."""
    if not spoken.says:
        return True
    if kind == "decisions":
        return spoken.asks or bool(spoken.marks & phrases.NO_DECISION)
    asks_for_it = "requests" in spoken.marks
    # "I'll call if it breaks" is a promise, "If it breaks, we'll call" only a possibility.
    only_if = "hypothetical" in spoken.marks
    only_if |= "conditions" in spoken.marks and "promises" not in spoken.marks
    return bool(spoken.marks & phrases.NO_TASK) or ((spoken.asks or only_if) and not asks_for_it)


def features(
    place: int, own: ReadMessage, before: ReadMessage | None, after: ReadMessage | None
) -> frozenset[str]:
    """Return the features of a sentence; those behind "user:" are of one side of the talk."""
    spoken = own.sentences[place]
    found = {*spoken.marks, *_form(place, own)}
    for name, other in (("before", before), ("after", after)):
        found |= {f"{name}:{each}" for each in _around(spoken, own, other)}
    if "agrees" in spoken.marks and "before:offers" in found:
        found.add("accepts")
    sided = {f"{own.side}:{each}" for each in found}
    return frozenset(found | sided | {own.side})


def _form(place: int, own: ReadMessage) -> Iterator[str]:
    spoken = own.sentences[place]
    yield _length(spoken.sentence.text)
    yield f"{min(len(own.sentences), MANY)} sentences"
    if place == len(own.sentences) - 1:
        yield "last"
    if len(spoken.sentence.text.split()) == 1:
        yield "one word"
    if not spoken.content.isdisjoint(_NUMBER.findall(spoken.sentence.text)):
        yield "figure"
    if place == 0:
        yield "first"
    elif own.agrees:
        yield "behind agreement"
    if spoken.asks:
        yield "asks"
    if any(each.asks for each in own.sentences):
        yield "message asks"


def _length(text: str) -> str:
    length = len(text[: phrases.MAX_LENGTH].split())
    return "short" if length <= SHORT else "medium" if length <= MEDIUM else "long"


def _around(spoken: Spoken, own: ReadMessage, other: ReadMessage | None) -> Iterator[str]:
    """Yield the features of the message before or after."""
    if other is None or other.side == own.side:
        yield "none" if other is None else "same side"
        return
    yield from other.marks & SEEN_AROUND
    # Options that can be chosen from, and what confirms in full, have figures.
    yield f"{min(len(_NUMBER.findall(other.text[: phrases.MAX_LENGTH])), 2)} figures"
    yield _length(other.text)
    if other.agrees:
        yield "begins to agree"
    if any(each.asks for each in other.sentences):
        yield "asks"
    if other.sentences and other.sentences[-1].asks:
        yield "ends asking"
    common = spoken.content & other.content
    if not common:
        return
    yield "common"
    if other.agrees:
        yield "agrees, common"
    if 2 * len(common) >= len(spoken.content):
        yield "repeats"
    if any(each.isdigit() for each in common):
        yield "figure"
