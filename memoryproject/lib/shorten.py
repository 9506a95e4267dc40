"""Cuts text to a length, for people and models to read."""

from __future__ import annotations


def cut_at_word(text: str, longest: int) -> str:
    """The text in at most ``longest`` characters: cut where a word ends, with "…" for what
    was cut; a single word that is too long is cut inside."""
    if len(text) <= longest:
        return text
    # The last character is a space or part of a cut word: either way it gives way to "…".
    head = text[:longest]
    whole_words = head.rpartition(" ")[0].rstrip()
    return (whole_words or head[:-1]) + "…"
