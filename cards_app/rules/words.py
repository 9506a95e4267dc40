"""Split a text into words, without separating letters from their accents or niqqud."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from cards_app.rules.lines import URL
from cards_app.rules.redact import MARKS
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
