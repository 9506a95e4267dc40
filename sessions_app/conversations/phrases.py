"""The phrases and texts of the languages that people write in, and the language of a message.

Each file of ``languages`` has those of one language: see ``docs/whatsapp.md``.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from memoryproject.foundation.text.characters import detect_language, fold

FOLDER = Path(__file__).parent / "languages"
MAX_LENGTH = 1_000
# A language is recognised by so many of a message's words, or more.
MIN_SHARE = 0.25
# English first: it is taken for Latin words that tell nothing.
LATIN = ("en", "es", "pt", "fr", "de", "it")
# What is to be forgotten must be the speaker's own. With the second it may be asked for. The third
# are of other verbs ("can you remove my wisdom tooth?"): it must be a detail. So must it before the
# verb of the fourth.
FORGET_OWN = ("forget_mine", "forget_asked", "forget_detail", "forget_last")
_OTHERS = ("remember", "remember_fact", "remember_colon", "memories", "forget", "forget_number")
COMMANDS = (*_OTHERS, *FORGET_OWN)
WORD_LISTS = ("fact_words", "not_memories", "attached_not", "mine", "details", "forget_last_words")
OPENERS = ("openers", "asking_openers", "polite")
SMALL_TALK = ("help", "thanks", "greeting", "acks")
# Accents, niqqud, Arabic vowel signs and invisible direction marks stand inside words.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
_MARKS += "\u200b-\u200f\u202a-\u202e\u2066-\u2069"
# No apostrophe is a part of a word, not even the one that counts as a letter.
_WORD = re.compile(rf"(?:[^\W\u02b9\u02bc]|[{_MARKS}])+")
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
        return "ru" if _RUSSIAN.search(text) else _by_words(text, ("ru", "uk"), before)
    if not detect_language(text):
        return ""
    return _by_words(text, LATIN, before)


def _by_words(text: str, candidates: Sequence[str], before: str) -> str:
    """Return the language that has most of the words, the first one where none has any.

    A word of several languages counts little. ``before`` is preferred where it may be the one.
    """
    common = _common_words()
    scores = dict.fromkeys(candidates, 0.0)
    words = words_of(text[:MAX_LENGTH])
    for word in words:
        for language in common.get(word.text, ()):
            if language in scores:
                scores[language] += 1 / len(common[word.text])
    best = max(candidates, key=lambda each: (scores[each], each == before))
    usual = before if before in candidates else candidates[0]
    # One short word may be a part of a name.
    return best if scores[best] >= MIN_SHARE * len(words) else usual


def is_common(word: str) -> bool:
    """Return whether the folded word is one of those that occur in every text of a language."""
    return word in _common_words()


@cache
def texts_of_languages() -> dict[str, dict[str, str]]:
    """Return the texts of the system in the files: language by name of the text."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for language, data in languages().items():
        for name, text in data["texts"].items():
            texts[name][language] = text
    return texts


def words_of(text: str) -> list[Word]:
    found = ((fold(match[0]).strip("_"), *match.span()) for match in _WORD.finditer(text))
    return [Word(*each) for each in found if each[0]]


@cache
def languages() -> dict[str, dict[str, Any]]:
    """Return the files of the languages, with the word lists folded."""
    read = {}
    # English first: it stands for words that several languages share.
    for path in sorted(FOLDER.glob("*.json"), key=lambda path: (path.stem != "en", path.stem)):
        data = json.loads(path.read_text(encoding="utf-8"))
        for name in WORD_LISTS:
            given = data.get(name, ())
            ends = {each for each in given if each.startswith("*")}
            whole = {word.text for each in given if each not in ends for word in words_of(each)}
            data[name] = frozenset(whole | {f"*{fold(each[1:])[-1]}" for each in ends})
        data["not_facts"] = frozenset(
            each for phrase in data["not_facts"] for each, _, _ in _wordings(phrase)
        )
        read[path.stem] = data
    return read


@cache
def _folded(piece: str) -> tuple[str, ...]:
    return tuple(word.text for word in words_of(piece))


@cache
def phrases() -> dict[tuple[str, ...], list[Phrase]]:
    """Return all phrases of all languages by their words."""
    table: dict[tuple[str, ...], list[Phrase]] = defaultdict(list)
    kinds = (*COMMANDS, *SMALL_TALK, *OPENERS, "closers", "asking")
    for language, data in languages().items():
        for kind in kinds:
            for phrase in data.get(kind, ()):
                for words, size, prefix in _wordings(phrase):
                    found = Phrase(language, kind, size, prefix)
                    if found not in table[words]:
                        table[words].append(found)
    return dict(table)


@cache
def command_starts() -> frozenset[str]:
    """Return the words with which a command may begin."""
    table = phrases().items()
    return frozenset(words[0] for words, found in table if any(p.kind in COMMANDS for p in found))


@cache
def longest_phrase() -> int:
    return max(map(len, phrases()))


@cache
def _common_words() -> dict[str, list[str]]:
    common: dict[str, list[str]] = defaultdict(list)
    for language, data in languages().items():
        for word in {word.text for each in data["common"] for word in words_of(each)}:
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


# Texts that the system itself sends to people.

TEXTS = texts_of_languages()

# DocumentError codes without a text of their own.
SAME_TEXT = {
    "too_slow": "too_complex",
    "too_much_memory": "too_complex",
    "missing": "unfetched",
    "unavailable": "unfetched",
}

RECEIVED = {
    "image": "received_image",
    "video": "received_video",
    "audio": "received_audio",
    "voice": "received_audio",
    "document": "received_document",
    "sticker": "received_sticker",
}


def document_failure(code: str) -> str:
    """Return the name of the text that explains why a document can't be read."""
    name = f"document_{SAME_TEXT.get(code, code)}"
    return name if name in TEXTS else "document_damaged"


def counted(thing: str, count: int, language: str) -> str:
    """Return a count in words: "1 page", "12 pages"."""
    words = languages().get(language, {}).get("counted") or languages()["en"]["counted"]
    one, many = words[thing]
    return str(one if count == 1 else many.format(count=count))


def text_for(name: str, language: str, **values: str) -> str:
    """Return the text of that name; in English if the language has none."""
    versions = TEXTS[name]
    return versions.get(language, versions["en"]).format(**values)


def received_text(kind: str, language: str) -> str:
    """Return the answer to a message without readable content."""
    return text_for(RECEIVED.get(kind, "received_unsupported"), language)
