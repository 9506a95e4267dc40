"""Divide texts that are too long for a model. Pure."""

from __future__ import annotations

from collections.abc import Sequence

MIN_HALF_LENGTH = 200


def in_parts(texts: Sequence[str], *, room: int) -> list[list[str]]:
    """Return the texts in groups of at most ``room`` characters, in order.

    A longer text is divided at a space. Nothing is left out.
    """
    parts: list[list[str]] = [[]]
    used = 0
    for piece in (piece for text in texts for piece in pieces(text, room=room)):
        if parts[-1] and used + len(piece) + 1 > room:
            parts.append([])
            used = 0
        parts[-1].append(piece)
        used += len(piece) + 1
    return [part for part in parts if part]


def pieces(text: str, *, room: int) -> list[str]:
    """Return the text in pieces of at most ``room`` characters."""
    found = []
    while len(text) > room:
        space = text.rfind(" ", room // 2, room)
        end = room if space < 0 else space + 1
        found.append(text[:end])
        text = text[end:]
    return [*found, text] if text else found


def halves(texts: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the texts in two halves of about the same length.

    Returns None if they are too short for that to help.
    """
    total = sum(len(text) for text in texts)
    if total < 2 * MIN_HALF_LENGTH:
        return None
    divided = in_parts(texts, room=total // 2 + 1)
    first, rest = divided[0], [text for part in divided[1:] for text in part]
    return (first, rest) if rest else None
