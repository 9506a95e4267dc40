"""Find a text in another one where it stands by itself: "ok" is no part of "book"."""

from __future__ import annotations

# A text that repeats itself may stand in another one at each of its characters. What it overlaps
# more often than this is searched no further: the time stays proportional to the lengths.
MAX_OVERLAP = 20


def whole_places(content: str, text: str) -> list[int] | None:
    """Return where the text begins, without word characters around it, from left to right.

    The places don't overlap. Returns None where the content is full of overlapping copies.
    """
    places: list[int] = []
    overlapped = 0
    at = content.find(text) if text else -1
    while at >= 0:
        end = at + len(text)
        if is_word_character(content[max(0, at - 1) : at]) or is_word_character(
            content[end : end + 1]
        ):
            overlapped += len(text)
            if overlapped > MAX_OVERLAP * len(content):
                return None
            at = content.find(text, at + 1)
        else:
            places.append(at)
            at = content.find(text, end)
    return places


def is_word_character(character: str) -> bool:
    """Return whether a character is one of those that \\w stands for; False for ""."""
    return character == "_" or character.isalnum()
