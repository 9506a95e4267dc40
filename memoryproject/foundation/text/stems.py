"""Stems of words by Snowball, in the languages of their script: a word doesn't say its language."""

from __future__ import annotations

import threading
from functools import lru_cache

# Of each script the languages in which a word is stemmed. The first stem of a Latin word is
# English.
LANGUAGES = {
    "latin": ("spanish", "portuguese", "french", "german", "italian"),
    "other": ("russian", "arabic"),
}
# A shorter word has no ending that could be cut off.
MIN_LENGTH = 4

# A stemmer keeps the current word in its state, so threads can't share one.
_stemmers = threading.local()

# Words that Snowball would merge although people distinguish them.
_EXCEPTIONS = {"accountant": "accountant", "accountants": "accountant"}


def stem(word: str) -> str:
    """Return the English stem of a folded word: "invoices" and "invoice" are one."""
    return _EXCEPTIONS.get(word) or _stem("english", word)


def other_stems(word: str, script: str, known: str) -> tuple[str, ...]:
    """Return the stems in the other languages of the script, without ``known``."""
    if len(word) < MIN_LENGTH:
        return ()
    found = (_stem(language, word) for language in LANGUAGES.get(script, ()))
    return tuple(dict.fromkeys(each for each in found if each and each != known))


@lru_cache(maxsize=100_000)
def _stem(language: str, word: str) -> str:
    stemmer = getattr(_stemmers, language, None)
    if stemmer is None:
        import snowballstemmer  # noqa: PLC0415 slow to import

        stemmer = snowballstemmer.stemmer(language)
        setattr(_stemmers, language, stemmer)
    return str(stemmer.stemWord(word))
