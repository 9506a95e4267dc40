"""The texts of the demo's story, and its recordings."""

import base64
import hashlib
import json
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memoryproject.foundation.integrations.lenient import Fields
from memoryproject.foundation.integrations.whatsapp import events, registry

FOLDER = Path(__file__).parent
MIME_TYPES = {"jpg": "image/jpeg", "png": "image/png", "wav": "audio/wav", "pdf": "application/pdf"}
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


# The recordings.


_RECORDED: dict[str, Any] = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))
CONVERSATIONS = {(provider, name): title for provider, name, title in _RECORDED["conversations"]}
"""The title of each conversation, by provider and name.

In ``godfather`` a client asks what only the owner may know.
"""
FILES: dict[str, str] = _RECORDED["files"]
"""The files that recorded messages name, by their ids at the Cloud API or their names."""
DEMO_SETTINGS: list[dict[str, str]] = _RECORDED["settings"]
"""What is stored where none of a group is set; "": something random."""
_TIMES = ("timestamp", "created_timestamp", "expiration_timestamp", "time")
_GREEN_IDS = ("idMessage", "stanzaId", "quotedMessageId")
_CLOUD_IDS = ("id", "message_id", "original_message_id")


def conversation(provider: str, name: str) -> list[dict[str, Any]]:
    """Return the webhook bodies of one recorded conversation, in order.

    Times and ids are those of the recording: restamp them.
    """
    text = (FOLDER / "recorded" / f"{provider}_{name}.json").read_text(encoding="utf-8")
    bodies: list[dict[str, Any]] = json.loads(text)
    return bodies


def events_of(provider: str, payload: dict[str, Any]) -> list[events.Event]:
    """Return the events of a webhook body."""
    return registry.PROVIDERS[provider].parse(payload)


def recorded_chats() -> set[str]:
    """Return the ids of the chats that a replay makes, as ``whatsapp_chat``."""
    return {
        address
        for provider, name in CONVERSATIONS
        for body in conversation(provider, name)
        for event in events_of(provider, body)
        if (party := getattr(event, "party", None)) is not None
        for address in party.addresses()
    }


def with_files_at(
    payload: dict[str, Any], names: Container[str], address_of: Callable[[str], str]
) -> dict[str, Any]:
    """Return a Green API body with another address for its file, if that is one of ``names``."""
    data = Fields.of(payload).at("messageData")
    file = data.at("fileMessageData")
    name = file.text("downloadUrl").rpartition("/")[2]
    if name not in names:
        return payload
    moved = {**data, "fileMessageData": {**file, "downloadUrl": address_of(name)}}
    return {**payload, "messageData": moved}


def restamp(payload: dict[str, Any], now: datetime, unique: str) -> dict[str, Any]:
    """Return a copy of a provider's body with new message ids.

    Its newest time becomes ``now``, and the others keep their distance. The same ``unique`` gives
    the same ids.
    """
    shift = int(now.timestamp()) - max(_times_in(payload), default=0)

    def changed(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(name, member) for name, member in value.items()}
        if isinstance(value, list):
            return [changed(key, member) for member in value]
        seconds = _seconds(key, value)
        if seconds is not None:
            return str(seconds + shift) if isinstance(value, str) else seconds + shift
        return _renamed(key, value, unique) if isinstance(value, str) else value

    return {name: changed(name, member) for name, member in payload.items()}


def _renamed(key: str, value: str, unique: str) -> str:
    """Return another id if the value is a message's id, in the form of its provider."""
    digest = hashlib.sha256(f"{unique}\n{value}".encode())
    if key in _CLOUD_IDS and value.startswith("wamid."):
        return "wamid." + base64.b64encode(digest.digest()).decode()
    if key in _GREEN_IDS and value:
        return digest.hexdigest()[:32].upper()
    return value


def _times_in(value: Any, key: str = "") -> list[int]:
    if isinstance(value, dict):
        return [time for name, member in value.items() for time in _times_in(member, name)]
    if isinstance(value, list):
        return [time for member in value for time in _times_in(member, key)]
    # The end of a conversation's window is in the future, and isn't related to the current time.
    seconds = None if key == "expiration_timestamp" else _seconds(key, value)
    return [] if seconds is None else [seconds]


def _seconds(key: str, value: Any) -> int | None:
    """Return a time in whole seconds, if the key is one of a time."""
    if key not in _TIMES or isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) else None
