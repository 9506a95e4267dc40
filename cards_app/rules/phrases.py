"""Words that mark a decision or a task, and words without content.

The English ones of ``decisions`` and ``todos`` are seed 001's, in its order; the Hebrew ones there
and all kinds of phrases in ``statements`` are this project's addition.
"""

import re
from functools import cache

from cards_app.rules.session_data import URL, one_line
from cards_app.rules.words import is_question, language_data, without_points
from memoryproject.foundation.text.characters import fold
from memoryproject.foundation.text.word_lists import ENGLISH as ENGLISH_WORDS, OTHERS

_ENGLISH, _HEBREW = language_data("en"), language_data("he")
# In Hebrew a task is "must", not "owes": חייב לשלם, but neither חייב לי nor חייבים להם.
DECISIONS, TODOS = _ENGLISH.lists["decisions"], _ENGLISH.lists["todos"]
STOP_WORDS, HEBREW_STOP_WORDS = _ENGLISH.words("stop_words"), _HEBREW.words("stop_words")
# Before Hebrew words: "and", "that", "when", "the".
_HEBREW_PREFIX = "(?:ו?(?:ש|כש)?ה?)"
# No phrase is looked for beyond: no statement is so long.
MAX_LENGTH = 400

_URL = re.compile(URL, re.IGNORECASE)
_CALLING = re.compile("[?!؟？！]")
_SCRIPTS = {
    "he": re.compile("[א-ת]"),
    "ar": re.compile("[\u0621-\u064a]"),
    "ru": re.compile("[\u0430-\u044f]"),
}
_LATIN = re.compile("[a-z]+(?:'[a-z]+)?")
_LATIN_LETTER = re.compile("[a-z]")
_GRAMMAR = {
    "en": ENGLISH_WORDS.function,
    **{
        code: frozenset(fold(" ".join(language_data(code).lists["grammar"])).split())
        for code in ("es", "pt")
    },
}
# Letters of languages that share a script: Ukrainian, Persian, Urdu, Turkish, Polish.
_FOREIGN = re.compile("[іїєґپچژگکیہےışğęłąśżźćń]")
MIN_WORDS = 8
# A quotation of several words says what somebody else said, as does the line that answers quote.
_QUOTED = re.compile(r"[\"“”«„][^\"“”«»„]{12,300}[\"“”»]|`[^`]{1,300}`")
_WHOLE_QUOTED = re.compile(r"(?<!\w)[\"“”«„][^\"“”«»„\n]{12,1000}[\"“”»]|```[^`]{1,9000}(?:```)?")
_CODE = re.compile(
    r"^\s*(?:>|//|#|/\*|\*/|def |import |class |function |</?\w)|[{};]\s*$|\w\(\w*\)| = |=>"
)


def _pattern(name: str) -> re.Pattern[str]:
    english, hebrew = _ENGLISH.lists[name], _HEBREW.lists[name]
    # An underscore inside a name is no word boundary; one around a word (WhatsApp's italics) is.
    words = rf"(?<![^\W_])(?<!\w_)(?:{'|'.join(english)})(?![^\W_])(?!_\w)"
    ours = rf"(?<![א-ת]){_HEBREW_PREFIX}(?:{'|'.join(hebrew)})(?![א-ת])"
    return re.compile(f"{words}|{ours}", re.IGNORECASE)


_DECISION = _pattern("decisions")
_TODO = _pattern("todos")


@cache
def _statements(language: str) -> dict[str, re.Pattern[str]]:
    """Return an expression for each kind of phrase, for folded text."""
    before = "(?<![^\\W_])(?:ו?(?:ש|כש)?)" if language == "he" else "(?<![^\\W_])"
    return {
        kind: re.compile(f"{before}(?:{folded})(?![^\\W_])")
        for kind, phrases in language_data(language).lists["statements"].items()
        for folded in [fold("|".join(phrases))]
    }


def languages_of(text: str) -> tuple[str, ...]:
    """Return the languages whose phrases may stand in a folded text.

    Letters tell those with a script of their own. English, Spanish and Portuguese are told by
    their words of grammar: "todo" is a task in English only.
    """
    found = [code for code, letter in _SCRIPTS.items() if letter.search(text)]
    words = _LATIN.findall(text)
    if words:
        votes = {code: sum(w in grammar for w in words) for code, grammar in _GRAMMAR.items()}
        votes["es"] += 2 * ("¿" in text)
        most = max(votes.values())
        found += [code for code, count in votes.items() if count >= most]
    return tuple(found)


def is_covered(text: str) -> bool:
    """Return whether there are phrases for the language of a text; True for a short one.

    Another script tells that there are none, as do words of other languages' grammar, or hardly
    any words of grammar that are known.
    """
    text = fold(text)
    letters = [letter for letter in text if letter.isalpha()]
    known = sum(len(script.findall(text)) for script in _SCRIPTS.values())
    words = set(_LATIN.findall(text))
    latin = len(_LATIN_LETTER.findall(text))
    known += latin
    if 2 * known < len(letters) or len(_FOREIGN.findall(text)) * 30 > len(letters):
        return False
    if len(words) < MIN_WORDS or 2 * latin < len(letters):
        return True
    ours = max(sum(word in grammar for word in words) for grammar in _GRAMMAR.values())
    others = sum(word in OTHERS and word not in _GRAMMAR["en"] for word in words)
    return ours * 10 >= len(words) and ours >= others


def marks_of(sentence: str, languages: tuple[str, ...]) -> frozenset[str]:
    """Return the kinds of phrases in a sentence: keys of ``statements``, and "decides", "todo"."""
    plain = words_said(sentence)
    text = fold(plain).lstrip(" -–•*·_.,:;!¡¿()\"'")
    found = {
        kind
        for language in languages
        for kind, pattern in _statements(language).items()
        if (pattern.match(text) if kind == "agrees" else pattern.search(text))
    }
    seeds = "en" in languages or "he" in languages
    if seeds and _DECISION.search(plain):
        found.add("decides")
    if seeds and _TODO.search(plain):
        found.add("todo")
    return frozenset(found)


def words_said(sentence: str) -> str:
    """Return what its writer says in a sentence: without quotations, code and addresses."""
    text = _URL.sub(" ", sentence[:MAX_LENGTH])
    return "" if _CODE.search(text) else one_line(without_points(_QUOTED.sub(" ", text)))


def quoted_places(text: str) -> list[tuple[int, int]]:
    """Return start and end of quotations of several words and of blocks of code in a message."""
    return [found.span() for found in _WHOLE_QUOTED.finditer(text)]


def asks_or_calls(sentence: str) -> bool:
    """Return whether the sentence has a "?" or "!" outside web addresses."""
    return _CALLING.search(_URL.sub(" ", sentence)) is not None


# Whatever else stands in a sentence: it settles nothing, or gives nobody a task.
NO_DECISION = frozenset({"others", "denied", "unsure", "conditions"})
NO_TASK = frozenset({"idle", "info", "unsure", "relays"})
# The answer to a wish to move an appointment grants nothing yet.
NOT_MOVED = frozenset({"unmoved", "defers", "unsure", "conditions", "denied", "takes_back"})
_DECIDING = frozenset({"decides", "firm", "settles", "refuses"})
_DUTIES = frozenset({"todo", "promises", "requests", "duties"})


def tells_decision(sentence: str) -> bool:
    """Return whether the sentence alone, without the messages around it, tells a decision."""
    marks = marks_of(sentence, languages_of(fold(sentence[:MAX_LENGTH])))
    return bool(marks & _DECIDING) and not marks & NO_DECISION and not is_question(sentence)


def tells_todo(sentence: str) -> bool:
    """Return whether the sentence alone marks a task; it may also be a question."""
    marks = marks_of(sentence, languages_of(fold(sentence[:MAX_LENGTH])))
    return bool(marks & _DUTIES) and not marks & NO_TASK
