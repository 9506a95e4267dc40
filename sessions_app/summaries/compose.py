"""Compose a summary message from chapters and digests. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from memoryproject.foundation.text.characters import CHARACTERS_A_TOKEN, cut_at_word

LEFT_OUT = "(The beginning is left out here.)"
# Less space than this holds nothing useful.
WORTH_READING = 60


def compose_summary(parts: Sequence[str], *, longest_tokens: int) -> str:
    """Join the parts, oldest first, in at most ``longest_tokens``.

    The newest are whole, the first that doesn't fit is cut, and older ones are replaced by a short
    note.
    """
    room = longest_tokens * CHARACTERS_A_TOKEN
    texts = [part.strip() for part in parts if part.strip()]
    if len("\n".join(texts)) <= room:
        return "\n".join(texts)
    room -= len(LEFT_OUT) + 1
    kept: list[str] = []
    for part in reversed(texts):
        if len(part) + 1 <= room:
            kept.append(part)
            room -= len(part) + 1
            continue
        if room >= WORTH_READING or not kept:
            kept.append(cut_at_word(part, max(room, 1)))
        break
    return cut_at_word("\n".join([LEFT_OUT, *reversed(kept)]), longest_tokens * CHARACTERS_A_TOKEN)
