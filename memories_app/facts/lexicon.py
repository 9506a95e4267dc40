"""The words that the rules know, in English, Hebrew and others: ``lexicon.json``. Folded here.

Those that tell a change, and what they are read with, are in ``renewals.json``.
"""

import json
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.terms import word_forms
from memoryproject.foundation.text.tokenizer import Kind, Token, kind_of, tokenize

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
OPENINGS = tuple(tuple(words.split()) for words in _LISTS["openings"])
# In texts that went through ``fold``: the pattern, and what stands for it.
CONTRACTIONS = tuple((re.compile(pattern), plain) for pattern, plain in _LISTS["contractions"])
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
NAMES = _words("names")
ATTRIBUTES = _words("attributes") | ROLES | NAMES
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
# A place is named; "a big house" and "the night shift" are none.
_NO_PLACES = ["|".join(_LISTS[name]) for name in ("no_place", "no_place_within")]
NO_PLACE = re.compile(fold(r"(?:{})(?!\w)|.*(?<!\w)(?:{})(?!\w)".format(*_NO_PLACES)))
# Somebody moves to it, and lives elsewhere: services, firms, courses, days.
NO_HOME = re.compile(fold(r"(?<!\w)(?:{})(?!\w)".format("|".join(_LISTS["no_home"]))))
# Before a condition.
CONDITIONS = _words("conditions")
# Only the conversation shows which person these refer to.
POINTERS = _words("pointers")
# They tell whose something is: not the speaker's.
ANOTHERS = _words("anothers")


_CHANGES = json.loads(Path(__file__).with_name("renewals.json").read_text(encoding="utf-8"))
_DAYS_AND_MONTHS = re.compile(
    r"\b(?:may (?=\d)|(?:\d+|in) may|[הובל]*יומ שני|(?:na|para|pra|de|a) segunda|segunda-feira)\b"
)
# Longer texts are not compared word by word.
MAX_WORDS = 14
# So many words say that somebody no longer does something.
_MAX_LEFT = 3
_ARABIC = re.compile("[\u0600-\u06ff]")


@cache
def pattern_of(*names: str) -> re.Pattern[str]:
    """Return the form of the words of these lists."""
    words = "|".join(chain.from_iterable(_CHANGES[name] for name in names))
    return re.compile(rf"(?<![\w'])[והבל]{{0,2}}-?(?:{fold(words)})(?![\w'])")


def words_in(folded_text: str) -> set[str]:
    """Return the words and the marks of a doubt; May is none, and no Monday that means "second"."""
    return set(re.findall(r"\w+|[?+]", _DAYS_AND_MONTHS.sub(" ", folded_text)))


def content_of(folded_text: str) -> list[Token]:
    """Return the words that name something."""
    return [token for token in tokenize(folded_text) if not token.part and not joins(token)]


def joining_of(folded_text: str) -> set[str]:
    """Return the other words. Two statements about one thing differ in few of them."""
    return {token.text for token in tokenize(folded_text) if not token.part and joins(token)}


def joins(token: Token) -> bool:
    """Return whether a word names nothing by itself."""
    is_function = token.script != "number" and kind_of(token) is Kind.FUNCTION
    return is_function or pattern_of("small").fullmatch(token.text) is not None


@cache
def listed(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(fold(" ".join(_CHANGES[name])).split())


def short_names(text: str) -> set[str]:
    """Return the names that are joining words without their capital: Al, Di, Will."""
    words = {token.text for token in tokenize(text) if token.capitalised} & listed("names")
    # "El" begins a sentence.
    return {word for word in words if not fold(text).startswith(f"{word} ")}


def forms_of(token: Token) -> set[str]:
    """Return the forms of a word; those of people have one each."""
    if _ARABIC.search(token.text):
        # Whose it is, is their ending.
        return {token.text.removeprefix("ال")}
    if is_several(token.text) or pattern_of("persons").fullmatch(token.text):
        # "Hija" and "hijo" are two people.
        return {token.text}
    bare = word_forms(token)
    return {token.text, bare.word, *bare.bare}


def is_named(word: Token, others: Sequence[Token]) -> bool:
    """Return whether others have the word, in any of its forms."""
    return any(bare_forms(word) & bare_forms(other) for other in others)


def bare_forms(word: Token) -> set[str]:
    """Return the forms of a word, in Arabic without whose it is."""
    forms = forms_of(word)
    if _ARABIC.search(word.text):
        forms |= {re.sub("(?:تي|تنا|نا|ي|ه)$", "", form) for form in forms}
    return forms


def is_several(word: str) -> bool:
    """Return whether a word names what a person may have several of."""
    return pattern_of("several").fullmatch(word) is not None


def is_number(token: Token) -> bool:
    return token.script == "number" or pattern_of("numerals").fullmatch(token.text) is not None


def are_units(behind: Sequence[Token]) -> bool:
    return all(pattern_of("units").fullmatch(word.text) for word in behind)


def is_place(folded_text: str) -> bool:
    """Return whether a text is the name of a well-known town or country, and nothing else."""
    return _place_key(folded_text) in _place_keys()


@cache
def _place_keys() -> frozenset[str]:
    """Return towns and countries, in the language of those who live there and in others."""
    lines = json.loads(Path(__file__).with_name("places.json").read_text(encoding="utf-8"))
    return frozenset(_place_key(fold(name)) for name in "|".join(lines).split("|"))


def _place_key(folded_text: str) -> str:
    """Return the words of a name, without the endings of Russian and Ukrainian cases."""
    words = re.findall(r"[^\W_]+", folded_text)
    return " ".join(re.sub("(?<=[а-яіїє]{2})[аяуюыиіьоеє]$", "", word) for word in words)


def is_generic(word: Token) -> bool:
    return pattern_of("generic").fullmatch(word.text) is not None


def is_own(folded_text: str) -> bool:
    """Return whether a text is about its writer: by a word, or by its first one, a verb."""
    is_verb = pattern_of("own_verbs").match(folded_text) is not None
    return is_verb or not FIRST_PERSON.isdisjoint(words_in(folded_text))


def leaves(clause: str, known: Sequence[Token]) -> bool:
    """Return whether a clause says that the writer has another one now, or that one no more.

    "I changed dentists" and "we don't see Dr. Katz any more" end "my dentist is Dr. Katz"; "my
    dentist has moved" and "Dr. Katz doesn't smoke any more" don't.
    """
    if found := pattern_of("changed").search(clause):
        behind = content_of(pattern_of("now", "fresh").sub(" ", clause[found.end() :]))
        same = [is_named(one, [other]) for one, other in zip(behind, known, strict=False)]
        return not content_of(clause[: found.start()]) and 0 < len(behind) == sum(same)
    given = content_of(pattern_of("ended", "not", "now").sub(" ", clause))
    is_ended = pattern_of("ended").search(clause) and pattern_of("ours").search(clause)
    is_short = len(given) <= _MAX_LEFT and not any(map(is_number, given))
    return bool(is_ended and is_short and any(is_named(word, known[1:]) for word in given))


def sees_another(text: str, known_text: str) -> bool:
    """Return whether the writer sees another doctor now: "I see Dr. Amir now", and nothing else."""
    titled = re.compile(rf"{pattern_of('titles').pattern}\W{{1,2}}(\w+)")
    name, other = (set(titled.findall(each)) for each in (text, known_text))
    is_new = pattern_of("now", "changed").search(text) and not pattern_of("negated").search(text)
    rest = pattern_of("now", "changed", "aside", "seeing").sub(" ", titled.sub(" ", text))
    return bool(name and other and is_new) and not (name & other or content_of(rest))


def one_change(known: Sequence[Token], given: Sequence[Token]) -> tuple[int, int, int, int] | None:
    """Return the places of the words that others stand for, if these are the only difference."""
    found = changes(known, given)
    return found[0][1:] if [each[0] for each in found] == ["replace"] else None


def changes(known: Sequence[Token], given: Sequence[Token]) -> list[tuple[str, int, int, int, int]]:
    """Return in what two texts differ; nothing where they are too short or too long for it."""
    if not 2 <= len(known) <= MAX_WORDS or not 2 <= len(given) <= MAX_WORDS:
        return []
    return [each for each in _opcodes(known, given) if each[0] != "equal"]


def _opcodes(
    known: Sequence[Token], given: Sequence[Token]
) -> Sequence[tuple[str, int, int, int, int]]:
    """Compare two texts word by word; words with a common form are equal."""
    forms = [forms_of(token) for token in known]
    numbers = [
        next((place for place, other in enumerate(forms) if other & own), -1 - number)
        for number, own in enumerate(map(forms_of, given))
    ]
    return SequenceMatcher(None, range(len(known)), numbers, autojunk=False).get_opcodes()
