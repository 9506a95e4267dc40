"""One spelling for words that readers regard as the same: case, accents, niqqud, final letters."""

from __future__ import annotations

import re
import unicodedata

# Marks that readers leave out at will: Latin and Greek accents, Hebrew niqqud and cantillation,
# Arabic vowel signs and the tatweel. Vowel signs of Indic and Thai scripts are letters there.
_OPTIONAL_MARKS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]"
)
# Direction marks, zero-width joiners and soft hyphens sit inside words and can't be seen.
_INVISIBLE = re.compile("[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_SAME_LETTER = str.maketrans(
    {
        "ך": "כ",
        "ם": "מ",
        "ן": "נ",
        "ף": "פ",
        "ץ": "צ",
        "أ": "ا",
        "إ": "ا",
        "آ": "ا",
        "ى": "ي",
        "ة": "ه",
        "ς": "σ",
    }
)


def readable(text: str) -> str:
    """Unify compatible characters in ``text``; remove invisible characters and optional marks.

    Case and final letters stay, because they distinguish names and word ends.
    """
    decomposed = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text))
    return unicodedata.normalize("NFKC", _OPTIONAL_MARKS.sub("", decomposed))


def fold(text: str) -> str:
    """Return the form in which words are compared. Folding twice changes nothing more."""
    folded = _fold_once(text)
    # Folding one character can produce another that folds further (an iota below a letter, say).
    while (again := _fold_once(folded)) != folded:
        folded = again
    return folded


def _fold_once(text: str) -> str:
    return readable(text).casefold().translate(_SAME_LETTER)
