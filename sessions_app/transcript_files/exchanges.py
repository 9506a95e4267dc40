"""Group a stored conversation into exchanges, a message and its answer.

Reports the messages that are in no exchange.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

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


# The text of a transcript. Knows no rule: any messages go into it and come out the same.

USER = "user"
ASSISTANT = "assistant"
LABELS = {USER: "User", ASSISTANT: "Assistant"}
ROLES = {label: role for role, label in LABELS.items()}

# "^" is the start of the text or follows a line feed: no other character ends a line.
SPEAKER = re.compile(r"^(User|Assistant):", re.MULTILINE)
# Both are anchored to one line feed, and look at each backslash once.
_LIKE_SPEAKER = re.compile(r"\n(\\*(?:User|Assistant):)")
_ESCAPED = re.compile(r"\n\\(\\*(?:User|Assistant):)")


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of a transcript.

    ``role``: user or assistant. ``line``: its first line in the file, from 1; 0 if it comes
    from no file. ``spaced``: one space follows the colon, as required.
    """

    role: str
    content: str
    line: int = 0
    spaced: bool = True


def message_text(*, role: str, content: str) -> str:
    """Return a message as it is written in a file."""
    escaped = _LIKE_SPEAKER.sub(r"\n\\\1", content)
    return f"{LABELS[role]}: {escaped}\n"


def messages_in(text: str) -> Iterator[TranscriptMessage]:
    """Yield the messages of a text, in one pass.

    The text before the first speaker's line is no message: see ``lines_before``.
    """
    line, counted = 1, 0
    found = SPEAKER.search(text)
    while found is not None:
        following = SPEAKER.search(text, found.end())
        line += text.count("\n", counted, found.start())
        counted = found.start()
        yield _message(text, found, following.start() if following else len(text), line)
        found = following


def lines_before(text: str) -> int:
    """Return how many lines precede the first speaker's line."""
    found = SPEAKER.search(text)
    before = text if found is None else text[: found.start()]
    return before.count("\n") + (1 if before and not before.endswith("\n") else 0)


def _message(text: str, found: re.Match[str], end: int, line: int) -> TranscriptMessage:
    start = found.end()
    spaced = text.startswith(" ", start)
    # The line feed that ends the message may be missing at the end of the file.
    end -= text.endswith("\n", start, end)
    content = text[start + spaced : end]
    return TranscriptMessage(
        role=ROLES[found[1]],
        content=_ESCAPED.sub(r"\n\1", content),
        line=line,
        spaced=spaced,
    )
