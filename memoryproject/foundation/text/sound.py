"""A key for words that sound alike: the same name in Hebrew and Latin letters, or misspelt."""

from __future__ import annotations

import re
from functools import lru_cache

MIN_SOUNDS = 4

_LATIN_PAIRS = (
    ("tsch", "s"), ("sch", "s"), ("sh", "s"), ("tz", "s"), ("ts", "s"), ("ch", "k"), ("kh", "k"),
    ("th", "t"), ("ph", "p"), ("ck", "k"), ("x", "ks"),
)  # fmt: skip
_SOFT_C = re.compile("c(?=[eiy])")
_LATIN_SOUNDS = str.maketrans("bcdfgjklmnpqrstvwz", "vkdpggklmnpkrstvvs", "aeiouyh")
_HEBREW_SOUNDS = str.maketrans("בגדזחטכלמנספצקרשת", "vgdsktklmnspskrst", "אהויע")
_REPEATS = re.compile(r"(.)\1+")


@lru_cache(maxsize=50_000)
def sound_key(word: str) -> str | None:
    """Return the consonants of a folded word in a common alphabet.

    Returns None if there are fewer than ``MIN_SOUNDS``, which would match by chance, or if the
    script is another.
    """
    if word.isascii() and word.isalpha():
        sounds = word
        for pair, sound in _LATIN_PAIRS:
            sounds = sounds.replace(pair, sound)
        sounds = _SOFT_C.sub("s", sounds).translate(_LATIN_SOUNDS)
    elif all("א" <= letter <= "ת" for letter in word):
        sounds = word.replace("וו", "ב").translate(_HEBREW_SOUNDS)
    else:
        return None
    key = _REPEATS.sub(r"\1", sounds)
    return key if len(key) >= MIN_SOUNDS else None
