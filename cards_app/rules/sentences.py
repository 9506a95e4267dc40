"""Split a text into sentences, in English, Hebrew and other languages with final marks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memoryproject.foundation.text.characters import is_mark

# The end of a line ends a sentence: lists and short messages have no full stops.
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# The pieces between spaces; the full stops of Chinese and Japanese need no space.
_PIECE = re.compile(r"[^\s。！？]*[。！？]+[」』）”]*|[^\s。！？]+")
_ASKING_OR_CALLING = frozenset("!?؟。！？‽⁇⁈⁉")
_ENDING = _ASKING_OR_CALLING | frozenset(".…")
_QUESTION_MARKS = frozenset("?؟？‽⁇⁈⁉")
_CLOSING = frozenset("\"'”’)]}»")
_GOING_ON = frozenset(",;:/")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations whose full stop doesn't end a sentence …
_NEVER_LAST = _words("mr mrs ms dr prof st vs e.g i.e eg ie cf approx messrs")
# … unless a capital letter follows …
_SELDOM_LAST = _words("etc inc ltd co corp jr sr dept est incl excl min max")
# … unless no number follows.
_BEFORE_NUMBERS = _words(
    "no nos nr p pp sec vol ch art fig tel ext jan feb mar apr jun jul aug sep sept oct nov dec"
)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_HEBREW_DOTTED = re.compile(r"(?:[א-ת]\.)+[א-ת]")


@dataclass(frozen=True)
class Sentence:
    """A sentence and its start in the text; without white space around it."""

    start: int
    text: str


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of ``text`` in order; only white space between them is left out."""
    found: list[Sentence] = []
    for line in _LINE.finditer(text):
        pieces = list(_PIECE.finditer(text, line.start(), line.end()))
        start: int | None = None
        for index, piece in enumerate(pieces):
            start = piece.start() if start is None else start
            following = pieces[index + 1].group() if index + 1 < len(pieces) else None
            if _is_last(piece.group(), following, leads=index == 0):
                found.append(Sentence(start, text[start : piece.end()]))
                start = None
    return found


def is_question(sentence: str) -> bool:
    """Return whether the sentence ends in "?"; quotes, brackets and smileys may follow."""
    return not _QUESTION_MARKS.isdisjoint(_ending(sentence))


def _ending(piece: str) -> str:
    """Return the characters after the last letter or digit."""
    place = len(piece)
    while place and not (piece[place - 1].isalnum() or is_mark(piece[place - 1])):
        place -= 1
    return piece[place:]


def _is_last(piece: str, following: str | None, *, leads: bool) -> bool:
    """Return whether the piece is the last of its sentence.

    ``following``: the next piece on the line, if any. ``leads``: the piece is the first on its
    line.
    """
    if following is None:
        return True
    ending = _ending(piece)
    marks = [index for index, character in enumerate(ending) if character in _ENDING]
    if not marks or not _GOING_ON.isdisjoint(ending[marks[-1] :]):
        return False
    next_letter = next((character for character in following if character.isalnum()), "")
    if next_letter.islower() and not _CLOSING.isdisjoint(ending):
        return False  # He asked "why?" and left.
    if not _ASKING_OR_CALLING.isdisjoint(ending):
        return True
    if "…" in ending or ".." in ending:
        return not next_letter.islower()
    word = piece[: len(piece) - len(ending)].lstrip("([{\"'“‘*_~-")
    return not _is_abbreviation(word, next_letter, leads=leads)


def _is_abbreviation(word: str, next_letter: str, *, leads: bool) -> bool:
    """Return whether the full stop after ``word`` belongs to it and doesn't end the sentence."""
    small = word.lower()
    goes_on = next_letter.islower() or next_letter.isdigit()
    if small in _NEVER_LAST or _HEBREW_DOTTED.fullmatch(word):
        return True
    if small in _BEFORE_NUMBERS and next_letter.isdigit():
        return True
    if (small in _SELDOM_LAST or _DOTTED.fullmatch(word)) and goes_on:
        return True
    if leads and len(word) <= 2 and (word.isdigit() or len(word) == 1):
        return True  # "1. First thing", "a. First thing"
    # An initial, as in "J. Smith"
    return len(word) == 1 and word.isupper() and word != "I" and next_letter.isupper()
