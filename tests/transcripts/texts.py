"""The text of a transcript, and what the reader makes of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sessions_app.transcript_files.parse_transcript import (
    Problem,
    Reader,
    TranscriptMessage,
    message_text,
)


def write(messages: Iterable[tuple[str, str]]) -> bytes:
    """The bytes of a file with these messages, each a role and its content."""
    return "".join(message_text(role=role, content=text) for role, text in messages).encode()


@dataclass(frozen=True)
class Parsed:
    messages: list[TranscriptMessage]
    problems: list[Problem]
    further: int
    notes: list[str]


def parse(data: bytes, *, file: str = "transcript") -> Parsed:
    reader = Reader(file)
    messages = list(reader.messages(data))
    return Parsed(messages, reader.problems, reader.further, reader.notes)
