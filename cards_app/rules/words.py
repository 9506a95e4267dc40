"""Split a text into words, without separating letters from their accents or niqqud."""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards_app.rules.session_data import URL
from memoryproject.foundation.redaction.redact import MARKS
from memoryproject.foundation.text.characters import is_mark

# Anything longer is no word, but a key, a hash or a text without spaces.
MAX_WORD_LENGTH = 50

_RUN = re.compile(r"[^\W_]+")
_NO_WORDS = re.compile("|".join([URL, *map(re.escape, MARKS)]), re.IGNORECASE)
# A letter before a number doesn't make it a word ("ל0501234567").
_LONG_NUMBER = re.compile(r"\d{7}")
_APOSTROPHES = "'’ʼ׳"
_GERSHAYIM = '"״”'
_PREFIX_LETTERS = re.compile("[ושהבלמכ]{1,3}")
_HEBREW_LETTER = re.compile("[א-ת]")
_HEBREW_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")
# "Docker's", "we're", "shouldn't"
_SHORT_FORM = re.compile(r"(?:n['’ʼ]t|['’ʼ](?:s|re|ve|ll|d|m|t))$", re.IGNORECASE)


@dataclass(frozen=True)
class LanguageData:
    """What the rules know of a language, by name; see ``languages/*.json``."""

    lists: dict[str, Any]

    def words(self, name: str) -> frozenset[str]:
        return frozenset(" ".join(self.lists[name]).split())


def language_data(code: str) -> LanguageData:
    path = Path(__file__).with_name("languages") / f"{code}.json"
    return LanguageData(json.loads(path.read_text(encoding="utf-8")))


def split_words(text: str) -> Iterator[str]:
    """Yield the words that start with a letter, in order, in their spelling.

    Web addresses and marks of redaction are left out. Hyphens separate words; an English short
    form gives its base word ("Docker's": Docker, "shouldn't": should).
    """
    for word in _joined_runs(_NO_WORDS.sub(" ", text)):
        whole = _SHORT_FORM.sub("", word)
        if whole[:1].isalpha() and len(whole) <= MAX_WORD_LENGTH and not _LONG_NUMBER.search(whole):
            yield whole


def letter_count(word: str) -> int:
    """Return the number of letters and digits; accents and niqqud belong to their letter."""
    return sum(1 for character in word if character.isalnum())


def folded(word: str) -> str:
    """Return the spelling under which the word is counted: lower case, no niqqud."""
    return without_points(unicodedata.normalize("NFC", word.lower()))


def without_points(text: str) -> str:
    """Return the text without niqqud, and with straight apostrophes."""
    return re.sub("[’ʼ]", "'", _HEBREW_POINTS.sub("", text))


def _joined_runs(text: str) -> Iterator[str]:
    """Yield runs of letters and digits, with the characters that join them to one word."""
    start = end = 0
    for run in _RUN.finditer(text):
        gap = text[end : run.start()]
        if (
            end
            and _joins(gap, text[end - 1], run.group()[0])
            and not _opens(text[start:end], gap, run.group())
        ):
            end = run.end()
            continue
        if end:
            yield text[start : _after_marks(text, end)]
        start, end = run.span()
    if end:
        yield text[start : _after_marks(text, end)]


def _joins(gap: str, before: str, after: str) -> bool:
    """Return whether the characters between two runs join them to one word."""
    if gap[0].isspace():
        return False
    bare = "".join(character for character in gap if not is_mark(character))
    if bare in ("", "_", "\u200c", "\u200d") or (len(bare) == 1 and bare in _APOSTROPHES):
        return True
    # ש"ח
    hebrew = _HEBREW_LETTER.match(before) or _HEBREW_POINTS.match(before)
    return len(bare) == 1 and bare in _GERSHAYIM and bool(hebrew and _HEBREW_LETTER.match(after))


def _opens(before: str, gap: str, after: str) -> bool:
    """Return whether these are quotation marks behind prefix letters: ב״שולחן״, not מנכ״לית."""
    return gap in _GERSHAYIM and len(after) > 2 and _PREFIX_LETTERS.fullmatch(before) is not None


def _after_marks(text: str, end: int) -> int:
    while end < len(text) and is_mark(text[end]):
        end += 1
    return end


# Split a text into sentences, in English, Hebrew and other languages with final marks.


# The end of a line ends a sentence: lists and short messages have no full stops.
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# The pieces between spaces; the full stops of Chinese and Japanese need no space.
_PIECE = re.compile(r"[^\s。！？]*[。！？]+[」』）”]*|[^\s。！？]+")
_ASKING_OR_CALLING = frozenset("!?؟。！？‽⁇⁈⁉")
_ENDING = _ASKING_OR_CALLING | frozenset(".…")
_QUESTION_MARKS = frozenset("?؟？‽⁇⁈⁉")
_CLOSING = frozenset("\"'”’)]}»")
_GOING_ON = frozenset(",;:/")


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Abbreviations whose full stop doesn't end a sentence …
_NEVER_LAST = word_set("mr mrs ms dr prof st vs e.g i.e eg ie cf approx messrs sr sra srta dra")
# … unless a capital letter follows …
_SELDOM_LAST = word_set("etc inc ltd co corp jr dept est incl excl min max")
# … unless no number follows.
_BEFORE_NUMBERS = word_set(
    "no nos nr p pp sec vol ch art fig tel ext jan feb mar apr jun jul aug sep sept oct nov dec"
)
# The day of a month, which many languages write with a full stop: "den 3. oktober kl. 9",
# "am 3.10. um 9". German months have a capital.
_DAY = re.compile(r"\d{1,2}(?:\.\d{1,2})?")
_GERMAN_MONTH = re.compile(r"(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)", re.IGNORECASE)
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
    if _DAY.fullmatch(word) and (next_letter.islower() or _GERMAN_MONTH.match(following)):
        return False
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
