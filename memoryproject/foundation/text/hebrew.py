"""Hebrew words without attached prefix letters, plural endings and possessive endings.

Hebrew can't be segmented with certainty without a dictionary ("של" may be a word or two prefixes).
So every reading that leaves a word of three letters is returned, and a match of any reading counts.
"""

from __future__ import annotations

import re
from functools import lru_cache

MIN_STEM = 3
MAX_WORD = 24

_PREFIXES = re.compile(r"ו?(?:לכש|כש|מש|ש)?[בלמכ]?ה?")
# Written with folded final letters. Longer endings come first; the empty ending is the word itself.
_ENDINGS = (
    "יהמ", "יהנ", "יכמ", "יות", "ינו", "תיכ", "תיו", "תמ", "תנ",
    "ימ", "ות", "ית", "נו", "כמ", "יו", "יה", "תו", "תה", "תי", "תכ",
    "ת", "ה", "י", "ו", "כ", "מ", "נ",
)  # fmt: skip
# A plural in "ות" belongs to a singular in "ה", and a construct state in "ת" to one in "ה".
_FEMININE_ENDINGS = ("ות", "ת", "תו", "תה", "תי", "תכ")


@lru_cache(maxsize=50_000)
def bare_forms(word: str) -> tuple[str, ...]:
    """Return the words of which a folded Hebrew ``word`` may be a form.

    The word itself and repeats are left out.
    """
    if len(word) > MAX_WORD:
        return ()
    forms: dict[str, None] = {}
    for rest in without_prefixes(word):
        forms[rest] = None
        for ending in _ENDINGS:
            if rest.endswith(ending) and len(rest) - len(ending) >= MIN_STEM:
                forms[rest[: -len(ending)]] = None
        for ending in _FEMININE_ENDINGS:
            if rest.endswith(ending) and len(rest) - len(ending) >= MIN_STEM - 1:
                forms[rest[: -len(ending)] + "ה"] = None
    forms.pop(word, None)
    return tuple(forms)


def without_prefixes(word: str) -> list[str]:
    """Return the word, and the word without each run of prefix letters that it may start with."""
    rests = [word]
    for length in range(1, min(5, len(word) - MIN_STEM + 1)):
        if _PREFIXES.fullmatch(word[:length]):
            rests.append(word[length:])
    return rests
