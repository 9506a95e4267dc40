"""Split a long text into parts that a provider accepts, where a reader would pause."""

from __future__ import annotations

import re

from memoryproject.foundation.text.characters import cut_between_characters

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
# A line's end counts as a sentence's end: lists have no full stops.
_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]*_~]*\s+|\n\s*")
_WORD = re.compile(r"\s+")


def text_length(text: str) -> int:
    """Return the text's length in UTF-16 code units.

    The providers don't document their unit. This is the unit of JavaScript and Java. It is never
    less than the number of code points, so a text within the limit is within it by both units.
    """
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def split_text(text: str, limit: int) -> list[str]:
    """Return the text in parts of at most ``limit`` UTF-16 code units, in order.

    A part ends after a paragraph, else a sentence or line, else a word, else between two characters
    as a reader sees them. White space at a cut is dropped, nothing else is. A text without visible
    characters gives no part. Raises ValueError for a limit below 2, because some characters need
    two units.
    """
    if limit < 2:
        raise ValueError("limit must be at least 2")
    parts: list[str] = []
    rest = text
    while text_length(rest) > limit:
        room = _fitting(rest, limit)
        # White space that begins right after the limit is a good place to cut, too.
        ahead = _WORD.match(rest, room)
        window_end = ahead.end() if ahead else room
        cut, resume = _place(rest, room, window_end)
        parts.append(rest[:cut])
        rest = rest[resume:]
    parts.append(rest)
    return [part for part in parts if part.strip()]


def _fitting(text: str, limit: int) -> int:
    """Return the number of characters from the start that fit into the limit."""
    units = 0
    for index, character in enumerate(text):
        units += 2 if ord(character) > 0xFFFF else 1
        if units > limit:
            return index
    return len(text)


def _place(text: str, room: int, window_end: int) -> tuple[int, int]:
    """Return the end of this part (at most ``room``) and the start of the next."""
    first_seen = len(text) - len(text.lstrip())
    for pattern in (_PARAGRAPH, _SENTENCE, _WORD):
        best = None
        for pause in pattern.finditer(text, first_seen, window_end):
            if pause.start() + len(pause.group().rstrip()) <= room:
                best = pause
        if best is not None:
            # A sentence's closing quotes stay in the part, the white space at the cut is dropped.
            return len(text[: best.end()].rstrip()), best.end()
    cut = cut_between_characters(text, room)
    return cut, cut
