"""A stretch of a conversation, each message shortened so that all fit together."""

from __future__ import annotations

from collections.abc import Sequence

from cards_app.rules.lines import Line, one_line
from cards_app.rules.speakers import section_words, spoken

MIN_PASSAGE_LENGTH = 40
# With less than this, who speaks and a few words, a line says nothing.
FEW_WORDS = 32


def shortened_lines(lines: Sequence[Line], *, longest: int) -> str:
    """Each message on a line of its own, "client: text", in at most ``longest`` characters.

    Short lines give the room that they don't need to long ones, which are cut at a word, with
    "…". Where not even a few words of each fit, the newest messages stay, and the first line
    says how many were left out. Messages without text have no line. As in
    ``extractive_summary``, nothing is redacted. Raises ValueError for ``longest`` below 40.
    """
    if longest < MIN_PASSAGE_LENGTH:
        raise ValueError(f"longest must be at least {MIN_PASSAGE_LENGTH}")
    said = [line for line in lines if line.content.strip()]
    words = section_words(said)
    texts = [(words.speaker(line.role), one_line(line.content)) for line in said]
    lengths = [len(speaker) + len(text) for speaker, text in texts]
    kept = _most_that_fit(lengths, longest=longest, note=words.left_out)
    first = len(texts) - kept
    note = _note(words.left_out, first)
    width = _width(lengths[first:], longest - len(note))
    return note + "\n".join(spoken(*text, longest=width) for text in texts[first:])


def _note(left_out: str, number: int) -> str:
    return left_out.format(number) + "\n" if number else ""


def _most_that_fit(lengths: Sequence[int], *, longest: int, note: str) -> int:
    """How many of the newest lines fit with a few words each; one in any case, if any."""
    fitting = min(1, len(lengths))
    used = 0
    for count, length in enumerate(reversed(lengths), start=1):
        used += min(length, FEW_WORDS) + len("\n")
        # Looked at to the end: with all of them there, no note takes room.
        if used - len("\n") <= longest - len(_note(note, len(lengths) - count)):
            fitting = count
    return fitting


def _width(lengths: Sequence[int], room: int) -> int:
    """The widest that lines may be so that all, with the breaks between them, fit."""
    left = room - (len(lengths) - 1)
    for index, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - index)
        if length > share:
            return share
        left -= length
    return room
