"""Words that mark a decision or a task, and words without content.

The English ones are seed 001's, in its order; the Hebrew ones are this project's addition.
"""

from __future__ import annotations

import re

from cards_app.rules.session_data import URL, one_line
from cards_app.rules.words import language_data, without_points

_ENGLISH, _HEBREW = language_data("en"), language_data("he")
# In Hebrew a task is "must", not "owes": חייב לשלם, but neither חייב לי nor חייבים להם.
DECISIONS, TODOS = _ENGLISH.lists["decisions"], _ENGLISH.lists["todos"]
STOP_WORDS, HEBREW_STOP_WORDS = _ENGLISH.words("stop_words"), _HEBREW.words("stop_words")
# Before Hebrew words: "and", "that", "when", "the".
_HEBREW_PREFIX = "(?:ו?(?:ש|כש)?ה?)"

_URL = re.compile(URL, re.IGNORECASE)
_CALLING = re.compile("[?!؟？！]")


def _pattern(name: str) -> re.Pattern[str]:
    english, hebrew = _ENGLISH.lists[name], _HEBREW.lists[name]
    # An underscore inside a name is no word boundary; one around a word (WhatsApp's italics) is.
    words = rf"(?<![^\W_])(?<!\w_)(?:{'|'.join(english)})(?![^\W_])(?!_\w)"
    ours = rf"(?<![א-ת]){_HEBREW_PREFIX}(?:{'|'.join(hebrew)})(?![א-ת])"
    return re.compile(f"{words}|{ours}", re.IGNORECASE)


_DECISION = _pattern("decisions")
_TODO = _pattern("todos")


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
