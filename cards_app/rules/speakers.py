"""The words that a summary adds to the messages, in English and Hebrew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cards_app.rules.session_data import Line
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


ENGLISH = SectionWords(
    about="About",
    decisions="Decided",
    todos="To do",
    questions="Asked",
    details="Said",
    names="Also named",
    left_out="({} earlier left out)",
    client="client",
    godfather="godfather",
    assistant="assistant",
)
HEBREW = SectionWords(
    about="נושא",
    decisions="הוחלט",
    todos="לטיפול",
    questions="נשאל",
    details="נאמר",
    names="הוזכרו גם",
    left_out="({} קודמות הושמטו)",
    client="לקוח",
    godfather="בעל העסק",
    assistant="העוזר",
)


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
