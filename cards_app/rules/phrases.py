"""Words that mark a decision or a task, and words without content.

The English ones are seed 001's, in its order; the Hebrew ones are this project's addition.
"""

from __future__ import annotations

import re

from cards_app.rules.session_data import URL, one_line
from cards_app.rules.words import without_points


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DECISIONS = (
    "decided",
    "decision",
    "will use",
    "chosen",
    "selected",
    "going with",
    "opted for",
    "settled on",
)
TODOS = (
    "todo",
    "need to",
    "should",
    "must",
    "will need",
    "remember to",
    "don't forget",
    "make sure to",
)
STOP_WORDS = _words(
    "the and for are but not you all can had her was one our out has have been would could "
    "should will with this that from they which their what there about when make like just "
    "over into also some than them then very after before being other those these"
)
# Not entities, although they start a sentence or always have a capital.
NO_ENTITIES = _words("i the this that it we you they")

# Patterns of whole words; each may have one of the prefixes "and", "that", "when", "the".
_HEBREW_PREFIX = "(?:ו?(?:ש|כש)?ה?)"
HEBREW_DECISIONS = (
    "החלט(?:תי|נו|ת|תם|ה|ות)",
    "החליט(?:ה|ו)?",
    "הוחלט",
    "סוכם",
    "סיכמנו",
    "בחרתי",
    "בחרנו",
    "נבחר(?:ה|ו)?",
    "[אנ]שתמש ב[א-ת]+",
    "[אנ]לך על",
    "הול(?:ך|כת|כים|כות) על",
    "סגר(?:תי|נו) על",
)
HEBREW_TODOS = (
    "צרי(?:ך|כה|כים|כות)",
    "[אנתי]צטרך",
    "[תי]צטרכ[וי]",
    # "must", not "owes": חייב לשלם, but חייב לי and חייבים להם
    "חייב(?:ת|ים|ות)? ל(?!(?:הם|הן|כם|כן|נו)(?![א-ת]))[א-ת]{2,}",
    "לזכור",
    "תזכ(?:ור|רי|רו)",
    "לא לשכוח",
    "אל תשכח(?:י|ו)?",
    "לוודא",
    "תווד(?:א|אי|או)",
    "משימ(?:ה|ות)",
)
HEBREW_STOP_WORDS = _words(
    "אנחנו אליהם אליכם אלינו איתכם איתנו בבקשה בשביל הייתה הייתי היינו יכולה יכולים להיות "
    "לפעמים מכיוון עכשיו צריכה צריכים רוצים"
)

_URL = re.compile(URL, re.IGNORECASE)
_CALLING = re.compile("[?!؟？！]")


def _pattern(english: tuple[str, ...], hebrew: tuple[str, ...]) -> re.Pattern[str]:
    # An underscore inside a name is no word boundary; one around a word (WhatsApp's italics) is.
    words = rf"(?<![^\W_])(?<!\w_)(?:{'|'.join(english)})(?![^\W_])(?!_\w)"
    ours = rf"(?<![א-ת]){_HEBREW_PREFIX}(?:{'|'.join(hebrew)})(?![א-ת])"
    return re.compile(f"{words}|{ours}", re.IGNORECASE)


_DECISION = _pattern(DECISIONS, HEBREW_DECISIONS)
_TODO = _pattern(TODOS, HEBREW_TODOS)


def tells_decision(sentence: str) -> bool:
    return _DECISION.search(_plain(sentence)) is not None


def tells_todo(sentence: str) -> bool:
    """Return whether the sentence marks a task; it may also be a question."""
    return _TODO.search(_plain(sentence)) is not None


def asks_or_calls(sentence: str) -> bool:
    """Return whether the sentence has a "?" or "!" outside web addresses."""
    return _CALLING.search(_URL.sub(" ", sentence)) is not None


def _plain(sentence: str) -> str:
    return one_line(without_points(sentence))
