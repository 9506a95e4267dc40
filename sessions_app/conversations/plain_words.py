"""Recognise commands and small talk in plain words, and the language of a message.

Each file of ``languages`` has the phrases and texts of one language; ``docs/commands.md`` says how
to write them. A message is a command only if all of it is one: where that is doubtful, it isn't.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

from memoryproject.foundation.text.characters import detect_language, fold

FOLDER = Path(__file__).parent / "languages"
# No fact in plain words is longer.
MAX_LENGTH = 1_000
MAX_OPENERS = 4
MAX_FORGET_WORDS = 8
MIN_FACT_WORDS = 2
# Shorter words before a full stop are taken for abbreviations: "St. 5".
MAX_ABBREVIATION = 3
MIN_STEM = 4
SMALL_TALK = ("help", "thanks", "greeting", "acks")
GREETING_SIGNS = "👋"
# Skin tones, joiners and marks that change no sign's meaning.
IGNORED_SIGNS = "\ufe0f\u200d🏻🏼🏽🏾🏿!."
ACK_SIGNS = "👍🙏👌❤💪👏✅😊🙂🎉😀😃😄🤝💯"

# Accents, niqqud, Arabic vowel signs and invisible direction marks stand inside words.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
_MARKS += "\u200b-\u200f\u202a-\u202e\u2066-\u2069"
_WORD = re.compile(rf"[\w{_MARKS}]+")
_PIECE = re.compile(r"\(([^()]*)\)|\[([^\[\]]*)\]|([^\s()\[\]]+)")
_ARABIC = re.compile("[\u0620-\u064a]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_UKRAINIAN = re.compile("[іїєґІЇЄҐ]")
_RUSSIAN = re.compile("[ыэъёЫЭЪЁ]")


class Word(NamedTuple):
    """A folded word, and its place in the text."""

    text: str
    start: int
    end: int


class Phrase(NamedTuple):
    """The rest of a message begins after ``size`` words.

    ``prefix``: the rest's first word begins with these letters, which are no part of the rest.
    """

    language: str
    kind: str
    size: int
    prefix: str


class PlainCommand(NamedTuple):
    """A command in plain words: its name and argument, and the language of its words."""

    name: str
    argument: str
    language: str


class _Message(NamedTuple):
    """A message, its words, and the end of those that are no closing words."""

    text: str
    words: Sequence[Word]
    end: int

    def holds_question(self, start: int) -> bool:
        return any(sign in self.text[start:] for sign in "?؟")

    def is_broken(self, place: int, signs: str) -> bool:
        """Return whether a sign, with a space after it, divides the words from ``place`` on."""
        for left, right in pairwise(self.words[place : self.end]):
            gap = self.text[left.end : right.start]
            is_short = left.end - left.start <= MAX_ABBREVIATION and not left.text.isdecimal()
            abbreviated = is_short and gap.startswith(". ")
            if "\n" in gap or (any(f"{sign} " in gap for sign in signs) and not abbreviated):
                return True
        return False


def plain_command(text: str) -> PlainCommand | None:
    """Return the command that the message surely gives in plain words, or None."""
    message = _message(text)
    if message is None:
        return None
    place, is_asked = 0, False
    for _ in range(MAX_OPENERS + 1):
        for phrase in _phrases_at(message, place):
            argument = _argument(message, phrase, place, is_asked=is_asked)
            if argument is not None:
                name = phrase.kind.partition("_")[0]
                return PlainCommand(name, argument, phrase.language)
        openers = list(_phrases_at(message, place, kinds=("openers", "asking_openers")))
        if not openers:
            return None
        is_asked |= openers[0].kind == "asking_openers"
        place += openers[0].size
    return None


def small_talk(text: str, *, name: str = "", language: str = "") -> tuple[str, str] | None:
    """Return the kind of small talk, one of ``SMALL_TALK``, and its language; None for the rest.

    ``name``: the assistant's, which may stand in it. ``language``: the chat's, where words are
    those of several languages.
    """
    names = {word.text for word in _words(name)}
    words = [word for word in _words(text[:MAX_LENGTH]) if word.text not in names]
    if not words:
        return _of_signs(text, language)
    if len(text) > MAX_LENGTH:
        return None
    message = _Message(text, words, len(words))
    place, found = 0, list[Phrase]()
    while place < len(words):
        phrases = list(_phrases_at(message, place, kinds=(*SMALL_TALK, "closers", "openers")))
        if not phrases:
            return None
        longest = [each for each in phrases if each.size == phrases[0].size]
        talk = [each for each in longest if each.kind in SMALL_TALK] or longest
        found.append(next((each for each in talk if each.language == language), talk[0]))
        place += found[-1].size
    known = [each for each in found if each.kind in SMALL_TALK]
    best = min(known, key=lambda each: SMALL_TALK.index(each.kind), default=None)
    return (best.kind, best.language) if best else None


def asks_in_words(text: str) -> bool:
    """Return whether the message asks something: by its mark, or by its first words."""
    message = _message(text[:MAX_LENGTH])
    if message is None:
        return False
    if message.holds_question(0) or "¿" in text:
        return True
    place = 0
    for _ in range(MAX_OPENERS + 1):
        if any(_phrases_at(message, place, kinds=("asking",))):
            return True
        opener = next(_phrases_at(message, place, kinds=("openers", "asking_openers")), None)
        if opener is None:
            return False
        place += opener.size
    return False


def language_of(text: str, before: str = "") -> str:
    """Return the code of the message's language; "" where it has no letters.

    ``before``: the chat's language, which stays where the words could be of it.
    """
    if detect_language(text) == "he":
        return "he"
    letters = sum(map(str.isalpha, text))
    if len(_ARABIC.findall(text)) * 3 > letters:
        return "ar"
    if len(_CYRILLIC.findall(text)) * 3 > letters:
        if _UKRAINIAN.search(text):
            return "uk"
        return "uk" if before == "uk" and not _RUSSIAN.search(text) else "ru"
    if not detect_language(text):
        return ""
    common = _common_words()
    scores: dict[str, float] = defaultdict(float)
    for word in _words(text[:MAX_LENGTH]):
        for language in common.get(word.text, ()):
            scores[language] += 1 / len(common[word.text])
    latin = {language for languages in common.values() for language in languages}
    if not scores:
        return before if before in latin else "en"
    return max(scores, key=lambda each: (scores[each], each == before, each == "en"))


@cache
def texts_of_languages() -> dict[str, dict[str, str]]:
    """Return the texts of the system in the files: language by name of the text."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for language, data in _languages().items():
        for name, text in data["texts"].items():
            texts[name][language] = text
    return texts


def _message(text: str) -> _Message | None:
    if len(text) > MAX_LENGTH:
        return None
    words = _words(text)
    message = _Message(text, words, len(words))
    while message.end > 1:
        sizes = range(min(_longest(), message.end - 1), 0, -1)
        size = next((size for size in sizes if _closes(words[message.end - size : message.end])), 0)
        if not size:
            break
        message = message._replace(end=message.end - size)
    return message


def _closes(words: Sequence[Word]) -> bool:
    found = _phrases().get(tuple(word.text for word in words), ())
    return any(phrase.kind == "closers" for phrase in found)


def _words(text: str) -> list[Word]:
    found = ((fold(match[0]).strip("_"), *match.span()) for match in _WORD.finditer(text))
    return [Word(*each) for each in found if each[0]]


COMMANDS = ("remember", "remember_fact", "remember_colon", "forget", "forget_number", "memories")


def _phrases_at(message: _Message, place: int, kinds: Sequence[str] = COMMANDS) -> Iterator[Phrase]:
    """Yield the phrases that stand at this place, the longest ones first."""
    table = _phrases()
    left = tuple(word.text for word in message.words[place : place + _longest()])
    for size in range(len(left), 0, -1):
        yield from (each for each in table.get(left[:size], ()) if each.kind in kinds)


def _argument(message: _Message, phrase: Phrase, place: int, *, is_asked: bool) -> str | None:
    """Return the argument of the command, or None where this is surely no command."""
    language = _languages()[phrase.language]
    first = place + phrase.size
    if phrase.kind == "memories":
        return "" if first >= message.end else None
    if first >= message.end or (message.holds_question(0) and not is_asked):
        return None
    rest = [word.text for word in message.words[first : message.end]]
    start = message.words[first].start
    if phrase.prefix:
        if not rest[0].startswith(phrase.prefix) or rest[0] in language["attached_not"]:
            return None
        rest[0] = rest[0].removeprefix(phrase.prefix)
        # Letters may have marks; the prefix itself is found as it stands.
        start += message.text[start:].index(phrase.prefix) + len(phrase.prefix)
        if not rest[0] and len(rest) < MIN_FACT_WORDS:
            return None
    argument = message.text[start:].lstrip("-־–, ")
    if message.end < len(message.words):
        argument = message.text[start : message.words[message.end - 1].end].lstrip("-־–, ")
    argument = argument.strip().rstrip(".!…?؟ ")
    if phrase.kind == "forget_number":
        return argument if len(rest) == 1 and rest[0].isdecimal() and len(rest[0]) <= 3 else None
    if phrase.kind == "forget":
        return argument if _is_memory(message, first, rest, language) else None
    gap = message.text[message.words[first - 1].end : start]
    if phrase.kind == "remember_colon" and ":" not in gap:
        return None
    return argument if _is_fact(message, phrase, first, rest) else None


def _is_fact(message: _Message, phrase: Phrase, first: int, rest: Sequence[str]) -> bool:
    language = _languages()[phrase.language]
    if len(rest) < MIN_FACT_WORDS or message.is_broken(first, ".!;"):
        return False
    if any(tuple(rest[:size]) in language["not_facts"] for size in range(1, _longest() + 1)):
        return False
    if phrase.kind != "remember_fact":
        return True
    return any(word in language["fact_words"] or word[0].isdigit() for word in rest)


def _is_memory(
    message: _Message, first: int, rest: Sequence[str], language: dict[str, Any]
) -> bool:
    if len(rest) > MAX_FORGET_WORDS or message.is_broken(first, ".!;:,،"):
        return False
    if any(word in language["not_memories"] for word in rest):
        return False
    mine = language["mine"]
    return not mine or any(_is_mine(word, mine) for word in rest)


def _is_mine(word: str, mine: frozenset[str]) -> bool:
    """Return whether the word says whose it is: by itself, or by its end ("*ي")."""
    return word in mine or (len(word) >= MIN_STEM and f"*{word[-1]}" in mine)


def _of_signs(text: str, language: str) -> tuple[str, str] | None:
    signs = [sign for sign in text if not sign.isspace() and sign not in IGNORED_SIGNS]
    if not signs or len(signs) > MIN_STEM:
        return None
    if all(sign in GREETING_SIGNS for sign in signs):
        return "greeting", language or "en"
    return ("acks", language or "en") if all(sign in ACK_SIGNS for sign in signs) else None


@cache
def _languages() -> dict[str, dict[str, Any]]:
    """Return the files of the languages, with the word lists folded."""
    read = {}
    # English first: it stands for words that several languages share.
    for path in sorted(FOLDER.glob("*.json"), key=lambda path: (path.stem != "en", path.stem)):
        data = json.loads(path.read_text(encoding="utf-8"))
        for name in ("fact_words", "not_memories", "attached_not", "mine"):
            given = data.get(name, ())
            ends = {each for each in given if each.startswith("*")}
            whole = {word.text for each in given if each not in ends for word in _words(each)}
            data[name] = frozenset(whole | {f"*{fold(each[1:])[-1]}" for each in ends})
        data["not_facts"] = frozenset(
            each for phrase in data["not_facts"] for each, _, _ in _wordings(phrase)
        )
        read[path.stem] = data
    return read


@cache
def _folded(piece: str) -> tuple[str, ...]:
    return tuple(word.text for word in _words(piece))


@cache
def _phrases() -> dict[tuple[str, ...], list[Phrase]]:
    """Return all phrases of all languages by their words."""
    table: dict[tuple[str, ...], list[Phrase]] = defaultdict(list)
    kinds = (*COMMANDS, *SMALL_TALK, "openers", "asking_openers", "closers", "asking")
    for language, data in _languages().items():
        for kind in kinds:
            for phrase in data.get(kind, ()):
                for words, size, prefix in _wordings(phrase):
                    found = Phrase(language, kind, size, prefix)
                    if found not in table[words]:
                        table[words].append(found)
    return dict(table)


@cache
def _longest() -> int:
    return max(map(len, _phrases()))


@cache
def _common_words() -> dict[str, list[str]]:
    common: dict[str, list[str]] = defaultdict(list)
    for language, data in _languages().items():
        for word in {word.text for each in data["common"] for word in _words(each)}:
            common[word].append(language)
    return dict(common)


def _wordings(phrase: str) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """Yield the words of each wording of a phrase, how many of them it takes up, and its prefix."""
    pieces = []
    for optional, group, word in _PIECE.findall(phrase):
        choices = (optional or group or word.lstrip("=")).split("|")
        if word.startswith("="):
            choices = [f"={choice}" for choice in choices]
        pieces.append([*choices, ""] if optional else choices)
    for wording in product(*pieces):
        *firsts, last = wording
        is_prefix, is_ahead = last.endswith("+"), last.startswith("=")
        words = [word for piece in firsts for word in _folded(piece)]
        size = len(words)
        if is_prefix:
            yield tuple(words), size, fold(last[:-1])
            continue
        words += _folded(last)
        yield tuple(words), size if is_ahead else len(words), ""
