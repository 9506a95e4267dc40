"""Group a stored conversation into exchanges, a message and its answer.

Reports the messages that are in no exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from sessions_app.transcript_files.transcript_text import ASSISTANT, USER

T = TypeVar("T")

UNANSWERED = "unanswered"
NO_QUESTION = "no_question"
BLANK = "blank"
OTHER_ROLE = "other_role"
TOO_LARGE = "too_large"

REASONS = {
    UNANSWERED: "a user's message without an answer",
    NO_QUESTION: "an answer without a user's message before it",
    BLANK: "a message without text",
    OTHER_ROLE: "neither a user's nor an assistant's message",
    TOO_LARGE: "an exchange that is larger than a batch may be",
}


@dataclass(frozen=True)
class Row(Generic[T]):
    """A stored message. ``value`` is chosen by the caller: its content or a sign."""

    message_id: UUID
    session_id: UUID
    order_num: int
    role: str
    blank: bool
    value: T


@dataclass(frozen=True)
class Exchange(Generic[T]):
    """A question of the user and the answer of the assistant."""

    question: Row[T]
    answer: Row[T]


@dataclass(frozen=True)
class LeftOut(Generic[T]):
    """A message that is in no exchange; ``reason`` is one of ``REASONS``."""

    row: Row[T]
    reason: str


def exchanges(rows: Iterable[Row[T]]) -> Iterator[Exchange[T] | LeftOut[T]]:
    """Yield each row of a conversation, in order: in an exchange, or left out."""
    question: Row[T] | None = None
    for row in rows:
        if row.role not in (USER, ASSISTANT):
            yield LeftOut(row, OTHER_ROLE)
        elif row.role == USER:
            if question is not None:
                yield LeftOut(question, UNANSWERED)
            question = None if row.blank else row
            if row.blank:
                yield LeftOut(row, BLANK)
        elif row.blank:
            yield LeftOut(row, BLANK)
        elif question is None:
            yield LeftOut(row, NO_QUESTION)
        else:
            yield Exchange(question, row)
            question = None
    if question is not None:
        yield LeftOut(question, UNANSWERED)
