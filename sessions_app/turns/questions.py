"""Questions of people, and those of them that are about one topic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from uuid import UUID

from memories_app.facts.facade import shape_of
from memoryproject.foundation.text.characters import fold

# How terms of the index begin that stand for forms of a word.
VARIANT = "~"
_PUNCTUATION = re.compile(r"\W+")


@dataclass(frozen=True)
class Question:
    """A question that somebody asked. ``terms``: those of its message; ``why``: see the caller."""

    turn_id: int
    chat_id: UUID
    text: str
    asked_at: datetime
    why: str = ""
    is_open: bool = True
    terms: Sequence[str] = field(default=(), repr=False)
    vector: Sequence[float] | None = field(default=None, repr=False)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that tell what it is about; none for small talk."""
        return shape_of(self.text).words


@dataclass(frozen=True)
class QuestionGroup:
    """Questions about one topic, the newest first. ``label``: the most central one."""

    label: Question
    questions: tuple[Question, ...]

    @property
    def people(self) -> int:
        return len({question.chat_id for question in self.questions})

    @property
    def last(self) -> datetime:
        return self.questions[0].asked_at

    @property
    def examples(self) -> list[Question]:
        """Return one question of each wording, the newest first."""
        by_key: dict[str, Question] = {}
        for question in self.questions:
            by_key.setdefault(folded_question(question.text), question)
        return list(by_key.values())


def folded_question(text: str) -> str:
    """Return the text without differences that a reader ignores."""
    return _PUNCTUATION.sub(" ", fold(text)).strip()
