"""The words that the rules know, in English, Hebrew and others: ``lexicon.json``. Folded here."""

import json
from pathlib import Path
from typing import Any

from memoryproject.foundation.text.characters import fold

_LISTS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(fold(" ".join(_LISTS[name])).split())


def _numbered(words: str, start: int = 1) -> dict[str, int]:
    return {fold(word): number for number, word in enumerate(words.split(), start=start)}


ARTICLES = _words("articles")
COPULAS = _words("copulas")
ENGLISH_COPULAS = _words("english_copulas")
# Words that don't change a fact.
FILLERS = _words("fillers")
# Words that mark a value as a later one. They are ignored where two values are compared.
RENEWALS = _words("renewals")
OPENINGS = (
    ("remember", "that"),
    ("note", "that"),
    ("remember",),
    ("תזכור", "ש"),
    ("תזכור",),
    ("תזכרי",),
)
# Left out before a time or a day: "on Monday" is "Monday".
# Words that begin what a value is for, or where and with whom it holds.
BEHIND_VALUE = _words("behind_value")
TIME_PREPOSITIONS = _words("time_prepositions")
RANGE_WORDS = _words("range_words")
RANGE_STARTS = _words("range_starts")

CURRENCIES = {
    fold(word): sign for sign, words in _LISTS["currencies"].items() for word in words.split()
}
PERCENT = _words("percent")
NUMBER_WORDS = {word: str(number) for word, number in _numbered(_LISTS["numbers"], 2).items()}
_DAYS = _LISTS["weekdays"].split()
WEEKDAYS = {**{day: day for day in _DAYS}, "shabbat": "saturday"}
HEBREW_WEEKDAYS = dict(zip(map(fold, _LISTS["hebrew_weekdays"].split()), _DAYS, strict=True))
# After these words the Hebrew names of weekdays mean weekdays, not "second" or "third".
HEBREW_DAY_WORDS = {fold("יום"): "", fold("ביום"): "", fold("ליום"): "ל", fold("מיום"): "מ"}
MONTHS = {word: number for names in _LISTS["months"] for word, number in _numbered(names).items()}

# Present-tense verbs. Past events don't exclude each other.
AMOUNT_VERBS = _words("amount_verbs")
# With these verbs a day is a value: a course starts once, but a shop opens every week.
DAY_VERBS = _words("day_verbs")
# These may stand between a verb and its value.
BETWEEN = _words("between")
# Attributes with one value at a time.
ROLES = _words("roles")
ATTRIBUTES = _words("attributes") | ROLES
# A number behind one of these is an identifier, not an amount.
NUMBERED = _words("numbered")

NEGATIONS = _words("negations")
# "Not all", "not Dana": the sentence goes on otherwise.
NOT_ALL = _words("not_all")
NO_THERE_IS = _words("no_there_is")
THERE_IS = fold("יש")
HELPERS = _words("helpers")
# "no longer", "not any more".
NEGATION_TAILS = _words("negation_tails")
ANTONYMS = {fold(word): fold(positive) for word, positive in _LISTS["antonyms"].items()}
# Next to one of these, "not" doesn't negate the whole statement.
NO_FLIP = _words("no_flip")
# Not a statement of fact, or one of several statements.
NOT_PLAIN = _words("not_plain")
# They are about the speaker.
FIRST_PERSON = _words("first_person")
# Where in a place a value holds: "upstairs".
PLACES = _words("places")
# What stands before a place.
PLACED = BEHIND_VALUE | _words("placed")
# Before a condition.
CONDITIONS = _words("conditions")
# Only the conversation shows which person these refer to.
POINTERS = _words("pointers")
# They tell whose something is: not the speaker's.
ANOTHERS = _words("anothers")
