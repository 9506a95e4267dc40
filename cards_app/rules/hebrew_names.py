"""Names in Hebrew, which has no capitals.

A word is a name by one of these: a title or the like stands before it, it stands in quotation
marks, it is an acronym with gershayim (צה״ל), or it is on a list of names that are hardly
anything else. Once it is one, it counts wherever it stands, with prefix letters, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cards_app.rules.hebrew_words import (
    ABBREVIATIONS,
    CALLED,
    NO_NAMES,
    PEOPLE,
    PLACES,
    TITLES,
    TOWNS,
    TOWNS_OF_TWO_WORDS,
)
from cards_app.rules.words import folded, without_points
from memoryproject.foundation.text.hebrew import without_prefixes
from memoryproject.foundation.text.kinds import Kind, kind_of
from memoryproject.foundation.text.normalise import fold
from memoryproject.foundation.text.tokens import Token

MIN_NAME_LENGTH = 3

_LETTER = re.compile("[א-ת]")
_MARKS = re.compile("[\"״”'׳’]")
_WORD = r"([א-ת][א-ת'׳\"״]*[א-ת])(?![א-ת])"
_BEFORE = "|".join([*TITLES, *CALLED, *PLACES])
_INTRODUCED = re.compile(rf"(?<![א-ת\"״'׳])[ולבמכש]?ה?(?:{_BEFORE})\.?\s+{_WORD}")
_QUOTED = re.compile(r"(?<![א-ת])[ושהבלמכ]{0,3}[\"״“„]([א-ת]{3,})[\"״”](?![א-ת])")
_ACRONYM = re.compile('[א-ת]+["״”][א-ת]')
# A name of the lists with these before it; others make other words of it (משרה, ברות).
_BEFORE_PEOPLE = ("ול", "ו", "ל")
_BEFORE_ACRONYMS = "ובלה"
_BEFORE_TOWNS = tuple(first + then for first in ("ו", "ש", "") for then in ("ב", "ל", "מ", ""))


def is_hebrew(text: str) -> bool:
    return _LETTER.search(text) is not None


def mentioned_names(sentence: str, words: Sequence[str]) -> Iterator[str]:
    """The names that the sentence itself tells to be names: after a title, in quotation marks,
    acronyms. ``words``: those of the sentence."""
    plain = without_points(sentence)
    for match in [*_INTRODUCED.finditer(plain), *_QUOTED.finditer(plain)]:
        if _may_be_name(match[1]):
            yield match[1]
    for word in map(folded, words):
        if _ACRONYM.fullmatch(word) and not _is_abbreviation(word):
            yield _acronym(word)


def towns_of_two_words(words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where in the sentence the first of two words stands that are one town, and the town."""
    plain = [folded(word) for word in words]
    for place, pair in enumerate(zip(plain, plain[1:], strict=False)):
        for first in _without(pair[0], _BEFORE_TOWNS):
            if (first, pair[1]) in TOWNS_OF_TWO_WORDS:
                yield place, f"{first} {pair[1]}"


def name_in(word: str, told: Iterable[str]) -> str | None:
    """The name that a folded Hebrew word is, perhaps behind prefix letters; None for no name.
    ``told``: the names that any sentence told."""
    if word in told or word in PEOPLE or word in TOWNS:
        return word
    for names, prefixes in ((PEOPLE, _BEFORE_PEOPLE), (TOWNS, _BEFORE_TOWNS)):
        for rest in _without(word, prefixes):
            if rest in names:
                return rest
    return next((rest for rest in without_prefixes(word)[1:] if rest in told), None)


def _without(word: str, prefixes: Iterable[str]) -> Iterator[str]:
    yield word
    for prefix in prefixes:
        if prefix and word.startswith(prefix):
            yield word[len(prefix) :]


def _acronym(word: str) -> str:
    """Without prefix letters, as far as three letters are left: of "ובארה״ב" that is "ארה״ב"."""
    while word[0] in _BEFORE_ACRONYMS and len(_MARKS.sub("", word[1:])) >= MIN_NAME_LENGTH:
        word = word[1:]
    return word


def _may_be_name(word: str) -> bool:
    """A word of no list of common words: after "חברת" may stand what firm it is."""
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
