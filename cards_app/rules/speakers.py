"""The words that a summary or a card adds to the messages, in English and Hebrew."""

from collections.abc import Iterable
from dataclasses import dataclass

from cards_app.rules.words import language_data
from memoryproject.foundation.text.characters import detect_language

# Roles that ask nothing: the topic of a conversation comes from others.
NOT_PEOPLE = frozenset({"assistant", "system", "tool", "summary"})
MAX_SPEAKER_LENGTH = 24


@dataclass(frozen=True)
class SectionWords:
    """Names of sections and speakers in a language."""

    about: str
    excerpts: str
    decisions: str
    todos: str
    questions: str
    details: str
    settled: str
    open: str
    acts: str
    names: str
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


def section_words(texts: Iterable[str]) -> SectionWords:
    """Return the words in the language of the conversation; English for other languages."""
    hebrew = detect_language("\n".join(texts)) == "he"
    return HEBREW if hebrew else ENGLISH
