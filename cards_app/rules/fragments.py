"""Fragments for a summary: the sentences of a conversation, each with its value."""

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
from memoryproject.foundation.text.tokenizer import Kind as WordKind
from memoryproject.foundation.text.tokenizer import kind_of, tokenize

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
# A sentence that is too long may be split here: after a comma or the like, else at a space.
_PAUSE = re.compile(r"[,;:)–—]\s")
_NO_PUNCTUATION = {ord(character): " " for character in ".,;:!?…\"'()*_~"}
_INFORMATIVE = frozenset({WordKind.COMMON, WordKind.PLAIN, WordKind.NAME})

MANY_NAMES = 3
MANY_WORDS = 10
ASSISTANT_WORTH = 0.8
# The weight of the first sentence of a conversation; a similar last sentence has 1.
OLDEST_WORTH = 0.5


class Kind(Enum):
    """The function of a sentence, in the order of a summary's sections."""

    DECISION = 0
    TODO = 1
    QUESTION = 2
    DETAIL = 3


_KIND_WORTH = {Kind.DECISION: 3.0, Kind.TODO: 2.0, Kind.QUESTION: 1.0, Kind.DETAIL: 0.0}


@dataclass(frozen=True)
class Fragment:
    """A sentence, or a part of one that is too long, with "…" at the cuts.

    ``place`` is the order in the conversation. ``worth``: its value compared with others; 0 for a
    sentence without content ("ok, thanks").
    """

    place: int
    role: str
    kind: Kind
    text: str
    worth: float


def find_fragments(lines: Sequence[Line], *, longest: int) -> list[Fragment]:
    """Return the fragments of a conversation in order, none longer than ``longest``.

    A repeated sentence appears once, with the place of its last occurrence.
    """
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
    """Return role and beginning of the first sentence with content.

    Sentences of others than the assistant are preferred. There must be a line with text.
    """
    by_people = [line for line in lines if line.role not in NOT_PEOPLE] or lines
    sentences = [
        (line.role, _bare(each)) for line in by_people for each in split_sentences(line.content)
    ]
    informative = (each for each in sentences if _worth(each[1], Kind.DETAIL, frozenset()))
    role, text = next(informative, sentences[0])
    return role, next(_parts(text, longest))


def _bare(sentence: Sentence) -> str:
    """Return the sentence on one line, without a list marker before it."""
    return _LIST_MARK.sub("", one_line(sentence.text))


def same_words(text: str) -> str:
    """Return a key that is equal for texts with the same words, whatever is between them."""
    return " ".join(folded(text).translate(_NO_PUNCTUATION).split()) or text


def _kind(sentence: str) -> Kind:
    if is_question(sentence):
        return Kind.QUESTION
    if tells_decision(sentence):
        return Kind.DECISION
    return Kind.TODO if tells_todo(sentence) else Kind.DETAIL


def _worth(text: str, kind: Kind, names: frozenset[str]) -> float:
    """Return the value: what people ask for later (figures, money, days, names) counts most."""
    # Keys, hashes and addresses have many digits, but nobody asks for them.
    plain = " ".join(word for word in text.split() if len(word) <= MAX_WORD_LENGTH)
    spoken = _URL.sub(" ", plain)
    words = list(split_words(plain))
    facts = 2.0 * bool(_FIGURE.search(spoken))
    facts += 1.0 * bool(_MONEY.search(spoken)) + 1.0 * bool(_DAY.search(spoken))
    facts += 0.7 * min(MANY_NAMES, sum(word in names for word in set(words)))
    facts += 0.5 * (spoken != plain or "@" in plain)
    informative = informative_words(plain)
    if not facts and informative < (2 if kind is Kind.DETAIL else 1):
        return 0.0
    return _KIND_WORTH[kind] + facts + 0.25 * min(MANY_WORDS, informative)


def informative_words(text: str) -> int:
    """Return how many words of the text carry content: not "thanks", "can" or "really"."""
    return sum(token.part or kind_of(token) in _INFORMATIVE for token in tokenize(text))


def _parts(text: str, longest: int) -> Iterator[str]:
    """Yield the text in pieces of at most ``longest`` characters, with marks at the cuts."""
    room = longest - 2 * len(CUT_MARK)
    before = ""
    while len(text) > longest - len(before):
        cut = _cut(text, room)
        yield before + text[:cut].rstrip() + CUT_MARK
        before, text = CUT_MARK, text[cut:].lstrip()
    if text:
        yield before + text


def _cut(text: str, room: int) -> int:
    """Return where to split: after a pause in the second half, a word, or a character."""
    pauses = [pause.start() + 1 for pause in _PAUSE.finditer(text, room // 2, room + 1)]
    if pauses:
        return pauses[-1]
    space = text.rfind(" ", 1, room + 1)
    return space if space > 0 else max(1, cut_between_characters(text, room))
