"""English stems, by the Snowball stemmer."""

from __future__ import annotations

import threading
from functools import lru_cache

# The stemmer keeps the current word in its state, so threads can't share one.
_stemmers = threading.local()

# Words that Snowball would merge although people distinguish them.
_EXCEPTIONS = {"accountant": "accountant", "accountants": "accountant"}


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word in Latin letters: "invoices" and "invoice" are one."""
    if word in _EXCEPTIONS:
        return _EXCEPTIONS[word]
    if not hasattr(_stemmers, "english"):
        import snowballstemmer  # noqa: PLC0415 slow to import

        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(word))
