"""The texts of the story: its people, their messages, facts, and the actions of staff.

All people are invented; the numbers are from the ranges reserved for fiction.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

FOLDER = Path(__file__).parent
MIME_TYPES = {
    "jpg": "image/jpeg",
    "png": "image/png",
    "wav": "audio/wav",
    "pdf": "application/pdf",
}
Record = TypeVar("Record")


@dataclass(frozen=True)
class Person:
    """A WhatsApp user or a group; ``provider`` is cloud or green."""

    whatsapp_chat: str
    name: str
    provider: str = "cloud"

    @property
    def number(self) -> str:
        """The telephone number, or the id of the group."""
        return self.whatsapp_chat.partition("@")[0]


@dataclass(frozen=True)
class Utterance:
    """One message and the assistant's answer.

    It is sent ``days`` days ago at ``time``. ``status``: the delivery status of the answer.
    ``then``: a later change of the message: edited:<text>, revoked, or reacted:<emoji>. ``fails``:
    failed, unconfirmed, missed or waiting. ``file``: the name of one of the demo's files. In a
    ``group``, a message without an answer wasn't addressed to the assistant.
    """

    person: Person
    days: int
    time: str
    text: str
    answer: str = ""
    kind: str = "text"
    status: str = "read"
    then: str = ""
    fails: str = ""
    file: str = ""
    group: Person | None = None


@dataclass(frozen=True)
class Fact:
    """A memory from staff or the owner, or, with a ``confidence``, a proposed one."""

    content: str
    visibility: str = "public"
    category: str = ""
    tags: tuple[str, ...] = ()
    pinned: bool = False
    days: int = 20
    corrected: str = ""
    of: Person | None = None
    confidence: float | None = None


@dataclass(frozen=True)
class StaffAction:
    """An action of ``by``, or of all staff, on the ``chats`` of these people, or on all chats.

    ``do``: label, assign, note, bookmark, review or read. ``message``: the exact text of the
    message that it concerns.
    """

    days: int
    time: str
    do: str
    by: str = ""
    chats: tuple[str, ...] = ()
    label: str = ""
    text: str = ""
    message: str = ""


def demo_file(name: str) -> bytes:
    """Return a picture or a recording of the demo."""
    return (FOLDER / "files" / name).read_bytes()


def mime_type_of(name: str) -> str:
    """Return the type of a file of the demo."""
    return MIME_TYPES[name.rpartition(".")[2]]


_STORY: dict[str, Any] = json.loads((FOLDER / "story.json").read_text(encoding="utf-8"))
PEOPLE = {key: Person(**row) for key, row in _STORY["people"].items()}


def _records(kind: type[Record], rows: list[dict[str, Any]]) -> list[Record]:
    """Return the records of these rows, with people instead of their keys."""
    people = ("person", "group", "of")
    return [
        kind(**{key: PEOPLE[value] if key in people else value for key, value in row.items()})
        for row in rows
    ]


MESSAGES = _records(Utterance, _STORY["messages"])
BUSINESS_FACTS = _records(Fact, _STORY["business_facts"])
FACTS_OF_PEOPLE = _records(Fact, _STORY["facts_of_people"])
STAFF_ACTIONS = _records(StaffAction, _STORY["staff_actions"])
# Questions of visitors with their answers; each day has some of them.
SMALL_TALK: list[tuple[str, str]] = _STORY["small_talk"]
PASSERS_BY: list[tuple[str, str]] = _STORY["passers_by"]
STAFF: list[tuple[str, str, str]] = _STORY["staff"]
PROFILE: dict[str, str] = _STORY["profile"]
LABELS: list[tuple[str, str]] = _STORY["labels"]
CANNED_REPLIES: list[tuple[str, str, str]] = _STORY["canned_replies"]
SUMMARY: str = _STORY["summary_of_emma"]
