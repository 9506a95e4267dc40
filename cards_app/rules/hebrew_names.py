"""Recognise names in Hebrew, which has no capitals.

A word is a name for one of these reasons: it follows a title or the like, it is in quotation
marks, it is an acronym with gershayim (צה״ל), or it is on a list of unambiguous names. A
recognised name counts everywhere, also with prefix letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cards_app.rules.words import folded, language_data, without_points
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.hebrew import without_prefixes
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of

_HEBREW = language_data("he")
# Words for the trade of a firm or the kind of a place, which are not its name.
NO_NAMES = _HEBREW.words("no_names")
PEOPLE = _HEBREW.words("people")
TOWNS = _HEBREW.words("towns")
TOWNS_OF_TWO_WORDS = frozenset(_HEBREW.lists["towns_of_two_words"])
# Words with gershayim that are not names, listed without the mark.
ABBREVIATIONS = _HEBREW.words("abbreviations")

MIN_NAME_LENGTH = 3

_LETTER = re.compile("[א-ת]")
_MARKS = re.compile("[\"״”'׳’]")
_WORD = r"([א-ת][א-ת'׳\"״]*[א-ת])(?![א-ת])"
# Patterns. A name follows them; each may have a prefix.
_BEFORE = "|".join(each for name in ("titles", "called", "places") for each in _HEBREW.lists[name])
_INTRODUCED = re.compile(rf"(?<![א-ת\"״'׳])[ולבמכש]?ה?(?:{_BEFORE})\.?\s+{_WORD}")
_QUOTED = re.compile(r"(?<![א-ת])[ושהבלמכ]{0,3}[\"״“„]([א-ת]{3,})[\"״”](?![א-ת])")
_ACRONYM = re.compile('[א-ת]+["״”][א-ת]')
# A listed name may have these before it; other prefixes make other words (משרה, ברות).
_BEFORE_PEOPLE = ("ול", "ו", "ל")
_BEFORE_ACRONYMS = "ובלה"
_BEFORE_TOWNS = tuple(first + then for first in ("ו", "ש", "") for then in ("ב", "ל", "מ", ""))


def is_hebrew(text: str) -> bool:
    return _LETTER.search(text) is not None


def mentioned_names(sentence: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the names that the sentence itself marks: after a title, in quotation marks, acronyms.

    ``words``: the words of the sentence.
    """
    plain = without_points(sentence)
    for match in [*_INTRODUCED.finditer(plain), *_QUOTED.finditer(plain)]:
        if _may_be_name(match[1]):
            yield match[1]
    for word in map(folded, words):
        if _ACRONYM.fullmatch(word) and not _is_abbreviation(word):
            yield _acronym(word)


def towns_of_two_words(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the towns of two words in the sentence, each with the place of its first word."""
    plain = [folded(word) for word in words]
    for place, pair in enumerate(zip(plain, plain[1:], strict=False)):
        for first in _without(pair[0], _BEFORE_TOWNS):
            town = f"{first} {pair[1]}"
            if town in TOWNS_OF_TWO_WORDS:
                yield place, town


def name_in(word: str, marked: Iterable[str]) -> str | None:
    """Return the name of a folded Hebrew word, maybe with prefix letters; None for no name.

    ``marked``: the names that any sentence has marked.
    """
    if word in marked or word in PEOPLE or word in TOWNS:
        return word
    for names, prefixes in ((PEOPLE, _BEFORE_PEOPLE), (TOWNS, _BEFORE_TOWNS)):
        for rest in _without(word, prefixes):
            if rest in names:
                return rest
    return next((rest for rest in without_prefixes(word)[1:] if rest in marked), None)


def _without(word: str, prefixes: Iterable[str]) -> Iterator[str]:
    yield word
    for prefix in prefixes:
        if prefix and word.startswith(prefix):
            yield word[len(prefix) :]


def _acronym(word: str) -> str:
    """Remove prefix letters if three letters are left: "ובארה״ב" becomes "ארה״ב"."""
    while word[0] in _BEFORE_ACRONYMS and len(_MARKS.sub("", word[1:])) >= MIN_NAME_LENGTH:
        word = word[1:]
    return word


def _may_be_name(word: str) -> bool:
    """Return whether the word isn't a common one: after "חברת" the firm's trade may follow."""
    bare = _MARKS.sub("", word)
    kind_of_firm = bare in NO_NAMES or bare.removeprefix("ה") in NO_NAMES
    if len(bare) < MIN_NAME_LENGTH or kind_of_firm or _is_abbreviation(word):
        return False
    return kind_of(Token(fold(bare), "hebrew")) is Kind.PLAIN


def _is_abbreviation(word: str) -> bool:
    bare = _MARKS.sub("", word)
    return len(bare) < MIN_NAME_LENGTH or any(
        rest in ABBREVIATIONS for rest in [bare, *_without(bare, "והבלמשכ")]
    )
