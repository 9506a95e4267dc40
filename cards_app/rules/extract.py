"""Summarise a conversation with its own sentences, for use without a chat model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from cards_app.rules.phrases import tells_decision, tells_todo
from cards_app.rules.sentence_words import is_hebrew
from cards_app.rules.session_data import URL, Line, one_line
from cards_app.rules.speakers import NOT_PEOPLE, SectionWords, section_words, spoken
from cards_app.rules.vocabulary import find_entities, is_keyword
from cards_app.rules.words import (
    MAX_WORD_LENGTH,
    Sentence,
    folded,
    is_question,
    split_sentences,
    split_words,
)
from memoryproject.foundation.text.characters import cut_between_characters
from memoryproject.foundation.text.tokenizer import Kind as WordKind
from memoryproject.foundation.text.tokenizer import kind_of, tokenize

MIN_SUMMARY_LENGTH = 40
MAX_BULLET_LENGTH = 240
MIN_BULLET_LENGTH = 60
# In the first round no section takes more than this share, except for one bullet, so that a chat
# full of tasks leaves room for its facts.
SECTION_SHARE = 0.4
NAMES_SHARE = 0.12
MAX_NAMES = 12
# The minimum frequency of a keyword in the line of names.
OFTEN = 3
# From this length on there is room for a line of names after the bullets.
ROOM_FOR_NAMES = 300


def extractive_summary(lines: Sequence[Line], *, longest: int) -> str:
    """Return the topics of the conversation in at most ``longest`` characters.

    The summary starts with the first request and lists decisions, open points, questions and
    other statements, then names that none of them contains. All text is verbatim except section
    names, speakers, "…" and the niqqud of names. If there isn't room for all, sentences with
    figures, money, days and names are preferred, and newer ones over older ones.

    Nothing is redacted, unlike on a card: the summary stays in its chat, and people ask for the
    numbers and names later. ``lines`` are the messages themselves, not an earlier summary. The
    result is "" if there is no text. Raises ValueError for ``longest`` below 40, which is too
    short for a sentence.
    """
    if longest < MIN_SUMMARY_LENGTH:
        raise ValueError(f"longest must be at least {MIN_SUMMARY_LENGTH}")
    written = [line for line in lines if line.content.strip()]
    if not written:
        return ""
    words = section_words(written)
    width = max(MIN_BULLET_LENGTH, min(MAX_BULLET_LENGTH, longest // 3))
    role, request = first_request(written, longest=width)
    about = f"{words.about}: "
    about += spoken(words.speaker(role), request, longest=longest - len(about))
    request_words = same_words(request)
    fragments = find_fragments(written, longest=width)
    rest = [each for each in fragments if each.worth and same_words(each.text) != request_words]
    room = longest - len(about)
    names = _candidates(written)
    # Choose once with room for all names, then with the room that the missing names leave.
    named = " " * (int(longest * NAMES_SHARE) if longest >= ROOM_FOR_NAMES else 0)
    for _ in range(2):
        chosen = _choose(rest, words, room=room - len(named))
        body = about + _rendered(chosen, words)
        named = _named(names, words, body=body, room=longest - len(body))
    return body + named


def _choose(fragments: Sequence[Fragment], words: SectionWords, *, room: int) -> list[Fragment]:
    """Return the most valuable fragments that fit, in the order of the conversation."""
    ranked = sorted(fragments, key=lambda each: (-each.worth, -each.place))
    chosen: dict[int, Fragment] = {}
    spent = dict.fromkeys(Kind, 0)
    for share in (SECTION_SHARE, 1.0):
        for each in ranked:
            cost = len(_bullet(each, words))
            if not spent[each.kind]:
                cost += len(_heading(each.kind, words))
            fits = sum(spent.values()) + cost <= room
            in_share = not spent[each.kind] or spent[each.kind] + cost <= share * room
            if each.place not in chosen and fits and in_share:
                chosen[each.place] = each
                spent[each.kind] += cost
    return [chosen[place] for place in sorted(chosen)]


def _rendered(fragments: Iterable[Fragment], words: SectionWords) -> str:
    sections: dict[Kind, str] = {}
    for each in fragments:
        start = sections.get(each.kind, _heading(each.kind, words))
        sections[each.kind] = start + _bullet(each, words)
    return "".join(sections[kind] for kind in Kind if kind in sections)


def _heading(kind: Kind, words: SectionWords) -> str:
    names = {
        Kind.DECISION: words.decisions,
        Kind.TODO: words.todos,
        Kind.QUESTION: words.questions,
        Kind.DETAIL: words.details,
    }
    return f"\n{names[kind]}:"


def _bullet(fragment: Fragment, words: SectionWords) -> str:
    return f"\n- {words.speaker(fragment.role)}{fragment.text}"


def _named(names: Sequence[str], words: SectionWords, *, body: str, room: int) -> str:
    """Return a line of the names that the summary doesn't contain yet; "" if there are none."""
    summary_words = {folded(word) for word in split_words(body)}
    plain = folded(body)
    # A Hebrew name may have prefix letters there.
    missing = [
        name
        for name in names
        if folded(name) not in summary_words
        and not ((is_hebrew(name) or " " in name) and folded(name) in plain)
    ]
    line = ""
    for name in missing[:MAX_NAMES]:
        longer = f"{line}, {name}" if line else f"\n{words.names}: {name}"
        if len(longer) > room:
            break
        line = longer
    return line


def _candidates(lines: Sequence[Line]) -> list[str]:
    """Return names, then keywords in their first spelling; the most frequent first."""
    spelled: dict[str, str] = {}
    count: dict[str, int] = {}
    for line in lines:
        for word in split_words(line.content):
            key = folded(word)
            spelled.setdefault(key, word)
            count[key] = count.get(key, 0) + 1
    names = find_entities(lines, most=None)
    known = {folded(name) for name in names}
    frequent = [key for key in count if count[key] >= OFTEN and key not in known]
    keywords = [key for key in frequent if is_keyword(key) and informative_words(key)]
    keywords.sort(key=lambda key: -count[key])
    return names + [spelled[key] for key in keywords]


# Fragments for a summary: the sentences of a conversation, each with its value.

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
    names = frozenset(
        word for name in find_entities(lines, most=None) for word in split_words(name)
    )
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
