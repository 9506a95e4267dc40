"""Questions for the place of a business: "where are you?", which holds no word of an address.

To vectors such a question is as near to the opening hours as to the address. So all of them are
searched for as one question, by the words that addresses have.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from memoryproject.foundation.retrieval.query import QueryTerm
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, tokenize

_WORD = re.compile(r"[^\W_]+")
_LONGEST = 12
# In other words, and in other languages, its vector is less near to addresses.
PLACE_QUESTION = "where is the shop, on which street"


@cache
def _lists() -> dict[str, list[str]]:
    lists: dict[str, list[str]] = json.loads(
        Path(__file__).with_name("place.json").read_text(encoding="utf-8")
    )
    return lists


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(fold(" ".join(_lists()[name])).split())


@cache
def _questions() -> list[list[set[str]]]:
    """Return each question as the words that may stand in its places; "-" is none."""
    return [
        [
            {"" if word == "-" else fold(word) for word in place.split("|")}
            for place in asked.split()
        ]
        for asked in _lists()["questions"]
    ]


def asks_for_place(text: str) -> bool:
    """Return whether the text asks where the business is, and nothing else."""
    words = _words_of(text)
    return len(words) <= _LONGEST and any(
        _fits(kept, places)
        for kept in (words, _without(words, _words("polite")))
        if kept
        for places in _questions()
    )


def names_thing(text: str) -> bool:
    """Return whether a question for the place calls it something: "where is the office?"."""
    return not _words("things").isdisjoint(_words_of(text))


@cache
def word_of_place() -> QueryTerm:
    """Return the word that stands for any of an address, in several languages."""
    forms = [word_forms(token) for token in tokenize(" ".join(_lists()["words"]))]
    words = [word for each in forms for word in (each.word, *each.bare)]
    return QueryTerm("address", Kind.COMMON, (*words, *("~" + word for word in words)))


def _words_of(text: str) -> list[str]:
    return _WORD.findall(fold(text[:200]))


def _without(words: Sequence[str], polite: frozenset[str]) -> Sequence[str]:
    kept = list(words)
    for end in (0, -1):
        while kept and kept[end] in polite:
            kept.pop(end)
    return kept


def _fits(words: Sequence[str], places: Sequence[set[str]]) -> bool:
    if not places:
        return not words
    here = places[0]
    return ("" in here and _fits(words, places[1:])) or (
        bool(words) and words[0] in here and _fits(words[1:], places[1:])
    )
