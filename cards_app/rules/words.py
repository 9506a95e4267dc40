"""Takes a text apart into words, without tearing letters from their accents or niqqud."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from cards_app.rules.lines import URL
from cards_app.rules.redact import MARKS
from memoryproject.foundation.text.characters import is_mark

# What is longer is no word but a key, a hash or a text without spaces.
MAX_WORD_LENGTH = 50

_RUN = re.compile(r"[^\W_]+")
_NO_WORDS = re.compile("|".join([URL, *map(re.escape, MARKS)]), re.IGNORECASE)
# A letter before a number makes no word of it ("ל0501234567").
_LONG_NUMBER = re.compile(r"\d{7}")
_APOSTROPHES = "'’ʼ׳"
_GERSHAYIM = '"״”'
_PREFIX_LETTERS = re.compile("[ושהבלמכ]{1,3}")
_HEBREW_LETTER = re.compile("[א-ת]")
_HEBREW_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")
# "Docker's", "we're", "shouldn't"
_SHORT_FORM = re.compile(r"(?:n['’ʼ]t|['’ʼ](?:s|re|ve|ll|d|m|t))$", re.IGNORECASE)


def split_words(text: str) -> Iterator[str]:
    """The words that start with a letter, in order, as they are spelled; neither addresses of
    web pages nor marks of redaction. Hyphens part words; an English short form gives the word
    it is short for ("Docker's": Docker, "shouldn't": should)."""
    for word in _joined_runs(_NO_WORDS.sub(" ", text)):
        whole = _SHORT_FORM.sub("", word)
        if whole[:1].isalpha() and len(whole) <= MAX_WORD_LENGTH and not _LONG_NUMBER.search(whole):
            yield whole


def letter_count(word: str) -> int:
    """How many letters and digits the word has: accents and niqqud belong to their letter."""
    return sum(1 for character in word if character.isalnum())


def folded(word: str) -> str:
    """The word in the one spelling under which it is counted: lower case, no niqqud."""
    return without_points(unicodedata.normalize("NFC", word.lower()))


def without_points(text: str) -> str:
    """The text without niqqud, and with straight apostrophes."""
    return re.sub("[’ʼ]", "'", _HEBREW_POINTS.sub("", text))


def _joined_runs(text: str) -> Iterator[str]:
    """Runs of letters and digits, together with what joins them to one word."""
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
    """True if what stands between two runs makes them one word."""
    if gap[0].isspace():
        return False
    bare = "".join(character for character in gap if not is_mark(character))
    if bare in ("", "_", "\u200c", "\u200d") or (len(bare) == 1 and bare in _APOSTROPHES):
        return True
    # ש"ח
    hebrew = _HEBREW_LETTER.match(before) or _HEBREW_POINTS.match(before)
    return len(bare) == 1 and bare in _GERSHAYIM and bool(hebrew and _HEBREW_LETTER.match(after))


def _opens(before: str, gap: str, after: str) -> bool:
    """True for quotation marks that open behind prefix letters: ב״שולחן״, unlike מנכ״לית."""
    return gap in _GERSHAYIM and len(after) > 2 and _PREFIX_LETTERS.fullmatch(before) is not None


def _after_marks(text: str, end: int) -> int:
    while end < len(text) and is_mark(text[end]):
        end += 1
    return end
