"""Words by which a statement is told from a question, a condition, an order or a secret.

``statement_words.json`` holds those of English, Hebrew, Spanish, Portuguese, Arabic and Russian,
with most of them of French, German, Italian and Ukrainian. A word that ends in "*" stands for all
words that begin so.
"""

import json
from dataclasses import dataclass
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


def _list(name: str) -> Words:
    return _words(" ".join(_LISTS[name]))


def _phrases(name: str) -> tuple[str, ...]:
    return tuple(map(fold, _LISTS[name]))


NEGATIONS = _list("negations")
# The second half of a pair: "neither … nor".
CORRELATIVES = _list("correlatives")
# "No" is "in the" in Portuguese.
PORTUGUESE = _list("portuguese")
ASKING = _list("asking")
# Spanish words that ask with their accent only ("como carne" is "I eat meat").
ASKING_BY_ACCENT = frozenset({"qué", "cómo"})
ASKING_ANYWHERE = _list("asking_anywhere")
DOUBTS = _list("doubts")
DOUBT_PHRASES = _phrases("doubt_phrases")
# "Si" with an accent is "yes"; "se" is a condition before these words only.
CONDITIONS_BY_ACCENT = frozenset({"si"})
PORTUGUESE_IF = _list("portuguese_if")
# "I would like a cake" may be noted as "would like a cake", not as "gets a cake".
WISHES = _list("wishes")
# After an optional "please", "always", "never" or "don't" at the beginning of a clause.
BEFORE_ORDERS = _list("before_orders")
ORDERS = _list("orders")
ORDER_PHRASES = _phrases("order_phrases")
ASSISTANT = _list("assistant")
# A clause that begins so, without "I", is said to the assistant.
ALWAYS = _list("always")
DUTIES = _list("duties")
HEARSAY = _list("hearsay")
HEARSAY_PHRASES = _phrases("hearsay_phrases")
OWN_WORDS = frozenset({"i", "я", "yo", "eu"})
FIRST = _list("first")
SECOND = _list("second")
LINKS = _list("links")
BUSINESS = _list("business")
BENEFITS = _list("benefits")
HEALTH = _list("health")
OTHERS = _list("others")
# "The guy in front of me": other people who are nobody of the writer's.
STRANGERS = _list("strangers")
# Of the first words, those that are no subject.
POSSESSIVE = _list("possessive")
WITH = _list("with")
PAST = _list("past")
PAST_PHRASES = _phrases("past_phrases")
# Where the words after one of these have a subject of their own, they are a clause.
STARTERS = _list("starters")
BUT = _list("but")
YES_OR_NO = _list("yes_or_no")
PASSWORDS = _list("passwords")
PASSWORD_PHRASES = _phrases("password_phrases")
# A number beside one of these is a secret.
PINS = _list("pins")
# A code for one of these is a secret; that of a door or a post office isn't.
CODES = _list("codes")
LOCKED = _list("locked")
PAYMENT_CARDS = _list("payment_cards")
CURRENCIES = {code: _words(words) for code, words in _LISTS["currencies"].items()}
NUMBER_WORDS = {
    fold(word): str(number)
    for number, words in enumerate(_LISTS["number_words"], start=1)
    for word in words.split()
}
