"""The words that a summary adds to the messages, in English and Hebrew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cards_app.rules.session_data import Line, one_line
from cards_app.rules.words import language_data
from memoryproject.foundation.text.characters import cut_at_word, detect_language

# Roles that ask nothing: the topic of a conversation comes from others.
NOT_PEOPLE = frozenset({"assistant", "system", "tool", "summary"})
MAX_SPEAKER_LENGTH = 24
MIN_SPOKEN_LENGTH = 12


@dataclass(frozen=True)
class SectionWords:
    """Names of sections and speakers in a language. ``left_out`` has a placeholder for a number."""

    about: str
    decisions: str
    todos: str
    questions: str
    details: str
    settled: str
    open: str
    acts: str
    names: str
    left_out: str
    client: str
    godfather: str
    assistant: str

    def speaker(self, role: str) -> str:
        """Return "client: " or the like for a role; nothing for a role without a name."""
        known = {
            "user": self.client,
            "client": self.client,
            "godfather": self.godfather,
            "assistant": self.assistant,
            "summary": "",
        }
        name = known.get(role, " ".join(role.split()))
        return f"{name}: " if 0 < len(name) <= MAX_SPEAKER_LENGTH else ""


ENGLISH, HEBREW = (SectionWords(**language_data(code).lists["sections"]) for code in ("en", "he"))


def spoken(speaker: str, text: str, *, longest: int) -> str:
    """Return the text behind its speaker, cut to the length.

    The speaker is left out if there would be hardly any room for the text.
    """
    room = longest - len(speaker)
    if room < min(len(text), MIN_SPOKEN_LENGTH):
        return cut_at_word(text, longest)
    return speaker + cut_at_word(text, room)


def section_words(lines: Iterable[Line]) -> SectionWords:
    """Return the words in the language of the conversation; English for other languages."""
    hebrew = detect_language("\n".join(line.content for line in lines)) == "he"
    return HEBREW if hebrew else ENGLISH


# Shorten a part of a conversation so that all of its messages fit.

MIN_PASSAGE_LENGTH = 40
# A shorter line has no room for the speaker and a few words.
FEW_WORDS = 32


def shortened_lines(lines: Sequence[Line], *, longest: int) -> str:
    """Return each message on its own line, "client: text", in at most ``longest`` characters.

    Short lines leave their unused room to long ones, which are cut at a word, with "…". If not
    even a few words of each fit, the newest messages stay, and the first line gives the number of
    the others. Messages without text have no line. As in ``extractive_summary``, nothing is
    redacted. Raises ValueError for ``longest`` below 40.
    """
    if longest < MIN_PASSAGE_LENGTH:
        raise ValueError(f"longest must be at least {MIN_PASSAGE_LENGTH}")
    written = [line for line in lines if line.content.strip()]
    words = section_words(written)
    texts = [(words.speaker(line.role), one_line(line.content)) for line in written]
    lengths = [len(speaker) + len(text) for speaker, text in texts]
    kept = _most_that_fit(lengths, longest=longest, note=words.left_out)
    first = len(texts) - kept
    note = _note(words.left_out, first)
    width = _width(lengths[first:], longest - len(note))
    return note + "\n".join(spoken(*text, longest=width) for text in texts[first:])


def _note(left_out: str, number: int) -> str:
    return left_out.format(number) + "\n" if number else ""


def _most_that_fit(lengths: Sequence[int], *, longest: int, note: str) -> int:
    """Return how many of the newest lines fit with a few words each; at least one, if any."""
    fitting = min(1, len(lengths))
    used = 0
    for count, length in enumerate(reversed(lengths), start=1):
        used += min(length, FEW_WORDS) + len("\n")
        # Check all lines: if they all fit, no note takes room.
        if used - len("\n") <= longest - len(_note(note, len(lengths) - count)):
            fitting = count
    return fitting


def _width(lengths: Sequence[int], room: int) -> int:
    """Return the maximum width of lines so that all fit, including their line breaks."""
    left = room - (len(lengths) - 1)
    for index, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - index)
        if length > share:
            return share
        left -= length
    return room
