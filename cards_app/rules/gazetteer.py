"""What is known of names: people and places of the world, and the words around names.

``gazetteer.json`` is made by ``benchmarks/make_gazetteer.py``; ``names.json`` is written by hand.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.word_lists import ENGLISH, HEBREW, OTHERS

MAX_WORDS = 4

_QUOTES = str.maketrans("״”“„׳’ʼ", '""""\'\'\'')
_CYRILLIC = re.compile("[а-я]")
# Endings of Russian cases: а vowel or two, and "-ом", "-ах", "-ого" and their like before them.
_VOWELS = "аеёиоуыьэюяй"
_CASE = re.compile("(?<=...)(?:[аеёиоыя][мх]|[ео]г)$")


@dataclass(frozen=True)
class Gazetteer:
    """Names by their keys, in their spelling.

    ``places`` has well-known firms and products, too, whose keys are ``brands``. ``also_words``:
    the keys of words that are names only beside other evidence. ``spellings``: all names as they
    are spelled.
    """

    given: Mapping[str, str]
    family: Mapping[str, str]
    places: Mapping[str, str]
    brands: frozenset[str]
    also_words: frozenset[str]
    spellings: frozenset[str]

    def person(self, key: str) -> str | None:
        return self.given.get(key) or self.family.get(key)

    def sure(self, key: str) -> str | None:
        """Return the name in its spelling if it is hardly ever anything else."""
        if key in self.also_words:
            return None
        return self.given.get(key) or self.places.get(key)


@lru_cache(maxsize=50_000)
def key_of(name: str) -> str:
    """Return the form in which names are compared: folded, without endings of Russian cases."""
    return " ".join(_key(word) for word in re.split("[ -]+", name))


def _key(word: str) -> str:
    key = fold(word.translate(_QUOTES))
    if not _CYRILLIC.match(key):
        return key
    stem = key.rstrip(_VOWELS)
    stem = _CASE.sub("", stem).rstrip(_VOWELS)
    return stem if len(stem) > 1 else key[: max(2, len(key) - 1)]


def _read(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


LISTS: dict[str, list[str]] = _read("names.json")


@lru_cache
def keys(name: str) -> frozenset[str]:
    """Return the keys of all words in a list of ``names.json``."""
    return frozenset(key_of(word) for word in " ".join(LISTS[name]).split())


@lru_cache
def gazetteer() -> Gazetteer:
    """Read when the first card is made: three programs of four never make one."""
    lists = {name: of.split("|") for name, of in _read("gazetteer.json").items()}
    given = [*" ".join(LISTS["people"]).split(), *lists["given"]]
    family = [*" ".join(LISTS["families"]).split(), *lists["family"]]
    brands = [brand for of in LISTS["brands"] for brand in of.split(", ")]
    places = [*brands, *LISTS["places"], *lists["places"]]
    # Stems of Russian words are too short to tell them from names: "вас" and "Вася".
    words = (word for of in (*ENGLISH, *HEBREW, OTHERS) for word in of)
    common = {key_of(word) for word in words if not _CYRILLIC.match(word)}
    return Gazetteer(
        given=_by_key(given),
        family=_by_key(family),
        places=_by_key(places),
        brands=frozenset(map(key_of, brands)),
        also_words=keys("also_words") | common,
        spellings=frozenset([*given, *family, *places]),
    )


def _by_key(names: Iterable[str]) -> dict[str, str]:
    by_key: dict[str, str] = {}
    for name in names:
        by_key.setdefault(key_of.__wrapped__(name), name)
    return by_key
