"""Shorten text, for people and models to read."""

from __future__ import annotations

from memoryproject.foundation.text.characters import cut_between_characters


def cut_at_word(text: str, longest: int, *, mark: str = "…") -> str:
    """Return the text in at most ``longest`` characters, cut at the end of a word.

    ``mark`` replaces the rest. A single word that is too long is cut inside, between two characters
    as a reader sees them. ``longest`` is greater than the mark's length.
    """
    if len(text) <= longest:
        return text
    room = longest - len(mark)
    # The character after the limit is a space or part of a cut word: it is removed in both cases.
    whole_words = text[: room + 1].rpartition(" ")[0].rstrip()
    return (whole_words or text[: cut_between_characters(text, room)]) + mark
