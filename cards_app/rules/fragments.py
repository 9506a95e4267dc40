"""What a summary chooses from: the sentences of a conversation, and what each is worth."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from cards_app.rules.lines import URL, Line, one_line
from cards_app.rules.phrases import tells_decision, tells_todo
from cards_app.rules.sentences import Sentence, is_question, split_sentences
from cards_app.rules.speakers import NOT_PEOPLE
from cards_app.rules.vocabulary import find_entities
from cards_app.rules.words import MAX_WORD_LENGTH, folded, split_words
from memoryproject.foundation.text.characters import cut_between_characters
from memoryproject.foundation.text.kinds import Kind as WordKind
from memoryproject.foundation.text.kinds import kind_of
from memoryproject.foundation.text.tokens import tokenize

CUT_MARK = "…"

_MONEY = re.compile(
    r"[₪$€£]|%|ש[\"״”]?ח\b|שקל(?:ים)?\b|\b(?:NIS|ILS|USD|EUR|GBP|dollars?|euros?|shekels?)\b",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(?:(?:sun|mon|tues|wednes|thurs|fri|satur)day|today|tomorrow|yesterday|tonight|"
    r"next (?:week|month|year)|january|february|april|june|july|august|september|october|"
    r"november|december)\b"
    r"|\b[ולבהמ]?(?:יום (?:ראשון|שני|שלישי|רביעי|חמישי|שישי)|מחר|מחרתיים|אתמול|שבוע הבא|"
    r"ינואר|פברואר|אפריל|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר|דצמבר)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d")
_URL = re.compile(URL, re.IGNORECASE)
_LIST_MARK = re.compile(r"\A[-–•*·]+\s+")
# Where a sentence that is too long may be parted: after a comma or the like, else a space.
_PAUSE = re.compile(r"[,;:)–—]\s")
_NO_PUNCTUATION = {ord(character): " " for character in ".,;:!?…\"'()*_~"}
_INFORMATIVE = frozenset({WordKind.COMMON, WordKind.PLAIN, WordKind.NAME})

MANY_NAMES = 3
MANY_WORDS = 10
ASSISTANT_WORTH = 0.8
# Of two like sentences, the last of a conversation counts as much more than its first.
OLDEST_WORTH = 0.5


class Kind(Enum):
    """What a sentence does, in the order in which a summary tells it."""

    DECISION = 0
    TODO = 1
    QUESTION = 2
    DETAIL = 3


_KIND_WORTH = {Kind.DECISION: 3.0, Kind.TODO: 2.0, Kind.QUESTION: 1.0, Kind.DETAIL: 0.0}


@dataclass(frozen=True)
class Fragment:
    """A sentence, or a part of one that is too long, with "…" where it is cut.

    ``place`` orders fragments as they were said. ``worth``: what keeping it is worth beside
    others; 0 for what says nothing ("ok, thanks").
    """

    place: int
    role: str
    kind: Kind
    text: str
    worth: float


def find_fragments(lines: Sequence[Line], *, longest: int) -> list[Fragment]:
    """The fragments of a conversation as they were said, none longer than ``longest``. What
    was said twice is there once, as new as when it was said last."""
    names = frozenset(find_entities(lines, most=None))
    found: dict[str, Fragment] = {}
    for index, line in enumerate(lines):
        recency = OLDEST_WORTH + (1 - OLDEST_WORTH) * (index + 1) / len(lines)
        speaker = ASSISTANT_WORTH if line.role in NOT_PEOPLE else 1.0
        for sentence in split_sentences(line.content):
            text = _bare(sentence)
            kind = _kind(text)
            for part in _parts(text, longest):
                own_kind = kind if kind is Kind.QUESTION else _kind(part)
                worth = recency * speaker * _worth(part, own_kind, names)
                new = Fragment(len(found), line.role, own_kind, part, worth)
                known = found.setdefault(same_words(part), new)
                if known.worth < worth:
                    found[same_words(part)] = replace(known, worth=worth)
    return list(found.values())


def first_request(lines: Sequence[Line], *, longest: int) -> tuple[str, str]:
    """Role and beginning of the first sentence that says something, of others than the
    assistant where they said anything. There is at least one line with text."""
    by_people = [line for line in lines if line.role not in NOT_PEOPLE] or lines
    sentences = [
        (line.role, _bare(each)) for line in by_people for each in split_sentences(line.content)
    ]
    telling = (each for each in sentences if _worth(each[1], Kind.DETAIL, frozenset()))
    role, text = next(telling, sentences[0])
    return role, next(_parts(text, longest))


def _bare(sentence: Sentence) -> str:
    """The sentence on one line, without the mark of a list before it."""
    return _LIST_MARK.sub("", one_line(sentence.text))


def same_words(text: str) -> str:
    """Equal for texts of the same words, whatever stands between them."""
    return " ".join(folded(text).translate(_NO_PUNCTUATION).split()) or text


def _kind(sentence: str) -> Kind:
    if is_question(sentence):
        return Kind.QUESTION
    if tells_decision(sentence):
        return Kind.DECISION
    return Kind.TODO if tells_todo(sentence) else Kind.DETAIL


def _worth(text: str, kind: Kind, names: frozenset[str]) -> float:
    """What people ask for later counts most: figures, money, days, names."""
    # Keys, hashes and addresses are full of figures that nobody asks for.
    plain = " ".join(word for word in text.split() if len(word) <= MAX_WORD_LENGTH)
    spoken = _URL.sub(" ", plain)
    words = list(split_words(plain))
    facts = 2.0 * bool(_FIGURE.search(spoken))
    facts += 1.0 * bool(_MONEY.search(spoken)) + 1.0 * bool(_DAY.search(spoken))
    facts += 0.7 * min(MANY_NAMES, sum(word in names for word in set(words)))
    facts += 0.5 * (spoken != plain or "@" in plain)
    telling = informative_words(plain)
    if not facts and telling < (2 if kind is Kind.DETAIL else 1):
        return 0.0
    return _KIND_WORTH[kind] + facts + 0.25 * min(MANY_WORDS, telling)


def informative_words(text: str) -> int:
    """How many words of the text say what it is about: not "thanks", "can" or "really"."""
    return sum(token.part or kind_of(token) in _INFORMATIVE for token in tokenize(text))


def _parts(text: str, longest: int) -> Iterator[str]:
    """The text in pieces of at most ``longest`` characters, with marks where it is cut."""
    room = longest - 2 * len(CUT_MARK)
    before = ""
    while len(text) > longest - len(before):
        cut = _cut(text, room)
        yield before + text[:cut].rstrip() + CUT_MARK
        before, text = CUT_MARK, text[cut:].lstrip()
    if text:
        yield before + text


def _cut(text: str, room: int) -> int:
    """Where to part the text: after a pause in the second half, a word, a character."""
    pauses = [pause.start() + 1 for pause in _PAUSE.finditer(text, room // 2, room + 1)]
    if pauses:
        return pauses[-1]
    space = text.rfind(" ", 1, room + 1)
    return space if space > 0 else max(1, cut_between_characters(text, room))
