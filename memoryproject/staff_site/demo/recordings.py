"""Recorded conversations that are part of the project, for the demo.

Their webhook bodies are given current times and new ids, so that they can be played again.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Container
from datetime import datetime
from typing import Any

from memoryproject.foundation.integrations.whatsapp.events import Event
from memoryproject.foundation.integrations.whatsapp.lenient import Fields
from memoryproject.foundation.integrations.whatsapp.registry import PROVIDERS
from memoryproject.staff_site.demo.story_texts import FOLDER

CONVERSATIONS = {
    ("cloud", "en"): "WhatsApp Cloud API: a client, in English",
    ("cloud", "he"): "WhatsApp Cloud API: a client, in Hebrew",
    ("cloud", "godfather"): "WhatsApp Cloud API: the godfather, and a client who asks the same",
    ("green", "en"): "Green API: a client, in English",
    ("green", "he"): "Green API: a client, in Hebrew",
}
"""The title of each conversation, by provider and name.

In ``godfather`` a client asks what only the owner may know.
"""
FILES = {
    "310000000000001": "shelf.jpg",
    "310000000000002": "voice.wav",
    "310000000000003": "cake.jpg",
    "leak.jpg": "leak.jpg",
    "note.oga": "voice.wav",
    "receipt.pdf": "receipt.pdf",
}
"""The files that recorded messages name, by their ids at the Cloud API or their names."""
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


def events_of(provider: str, payload: dict[str, Any]) -> list[Event]:
    """Return the events of a webhook body."""
    return PROVIDERS[provider].parse(payload)


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
