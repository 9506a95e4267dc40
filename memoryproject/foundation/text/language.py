"""Detects the language of a text, among the languages of our system texts."""

from __future__ import annotations

import re

HEBREW_LETTER = re.compile("[\u05d0-\u05ea]")
LATIN_LETTER = re.compile(r"[A-Za-z]")


def detect_language(text: str) -> str:
    """Return "he", "en" or "" for a text.

    "he": at least every third letter is Hebrew (names often stay in Latin letters). "en": other
    letters. "": the text has no letters.
    """
    hebrew = len(HEBREW_LETTER.findall(text))
    latin = len(LATIN_LETTER.findall(text))
    if hebrew and hebrew * 2 >= latin:
        return "he"
    return "en" if latin else ""
