"""How informative a word is about a text's topic, from word lists and from its spelling."""

from __future__ import annotations

from enum import Enum

from memoryproject.foundation.text import english_words, hebrew_words
from memoryproject.foundation.text.english import stem
from memoryproject.foundation.text.hebrew import without_prefixes
from memoryproject.foundation.text.tokens import Token


class Kind(Enum):
    """Kinds of words, from the least informative to the most.

    SOUGHT is no word but the kind of answer that the question asks for.
    """

    FUNCTION = "function"
    SOUGHT = "sought"
    VAGUE = "vague"
    COMMON = "common"
    PLAIN = "plain"
    NAME = "name"


def _bare(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word.replace("'", "") for word in words)


def _stems(words: frozenset[str]) -> frozenset[str]:
    return _bare(words) | frozenset(stem(word) for word in _bare(words))


_ENGLISH = (
    (Kind.FUNCTION, _bare(english_words.FUNCTION)),
    (Kind.VAGUE, _stems(english_words.VAGUE)),
    (Kind.COMMON, _stems(english_words.COMMON)),
)
_HEBREW = (
    (Kind.FUNCTION, hebrew_words.FUNCTION),
    (Kind.VAGUE, hebrew_words.VAGUE),
    (Kind.COMMON, hebrew_words.COMMON),
)
# The only prefixes that are written together with a grammar word.
_JOINED = ("ו", "ש", "ה")


def kind_of(token: Token) -> Kind:
    """Return the kind of ``token`` by itself; PLAIN if it is in no list."""
    if token.part:
        return Kind.VAGUE
    if token.script == "hebrew":
        return _hebrew_kind(token.text)
    if token.identifier:
        return Kind.NAME
    if token.script == "number":
        return Kind.COMMON
    for kind, words in _ENGLISH:
        if token.text in words or (kind is not Kind.FUNCTION and stem(token.text) in words):
            return kind
    return Kind.NAME if token.camel_parts else Kind.PLAIN


def _hebrew_kind(word: str) -> Kind:
    for kind, words in _HEBREW:
        if word in words:
            return kind
    if word.startswith(_JOINED) and word[1:] in hebrew_words.FUNCTION:
        return Kind.FUNCTION
    rests = without_prefixes(word)[1:]
    for kind, words in _HEBREW[1:]:
        if any(rest in words for rest in rests):
            return kind
    return Kind.PLAIN
