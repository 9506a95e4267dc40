"""Words by which a statement is told from a question, a condition, an order or a secret.

``statement_words.json`` holds those of English, Hebrew, Spanish, Portuguese, Arabic and Russian,
with most of them of French, German, Italian and Ukrainian. A word that ends in "*" stands for all
words that begin so. Of its lists:

- ``correlatives``: the second half of a pair: "neither … nor".
- ``portuguese``: "no" is "in the" in Portuguese.
- ``portuguese_if``: "se" is a condition before these words only.
- ``wishes``: "I would like a cake" may be noted as "would like a cake", not as "gets a cake".
- ``before_orders``: an optional "please", "always", "never" or "don't" at the beginning of a
  clause, before one of ``orders``.
- ``always``: a clause that begins so, without "I", is said to the assistant.
- ``starters``: where the words after one of these have a subject of their own, they are a clause.
- ``pins``: a number beside one of these is a secret.
- ``codes``: a code for one of ``locked`` is a secret; that of a door or a post office isn't.
- ``strangers``: "the guy in front of me": other people who are nobody of the writer's.
- ``possessive``: of the first words, those that are no subject.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from memoryproject.foundation.text.characters import fold

# Written together with the word after them: "and", "that", "when", "the" in Hebrew and Arabic.
_JOINED = ("ו", "ש", "כש", "וש", "ה", "و", "ف")
_LISTS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Words:
    """A set of words and of beginnings of words."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]

    def __contains__(self, word: str) -> bool:
        if word in self.whole or word.startswith(self.beginnings):
            return True
        return any(
            word[len(joined) :] in self.whole or word[len(joined) :].startswith(self.beginnings)
            for joined in _JOINED
            if word.startswith(joined)
        )


def _words(text: str) -> Words:
    found = fold(text).split()
    return Words(
        frozenset(word for word in found if not word.endswith("*")),
        tuple(word[:-1] for word in found if word.endswith("*")),
    )


@cache
def words(name: str) -> Words:
    """Return the words of this list."""
    return _words(" ".join(_LISTS[name]))


@cache
def phrases(name: str) -> tuple[str, ...]:
    """Return the phrases of this list, folded."""
    return tuple(map(fold, _LISTS[name]))


# Spanish words that ask with their accent only ("como carne" is "I eat meat").
ASKING_BY_ACCENT = frozenset({"qué", "cómo"})
# "Si" with an accent is "yes".
CONDITIONS_BY_ACCENT = frozenset({"si"})
OWN_WORDS = frozenset({"i", "я", "yo", "eu"})
CURRENCIES = {code: _words(names) for code, names in _LISTS["currencies"].items()}
NUMBER_WORDS = {
    fold(word): str(number)
    for number, names in enumerate(_LISTS["number_words"], start=1)
    for word in names.split()
}
