"""Recorded conversations that are part of the project, for the demo."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Container
from datetime import datetime
from importlib import resources
from typing import Any

from memoryproject.foundation.integrations.whatsapp.lenient import mapping, text_of

PROVIDERS = ("cloud", "green")
CONVERSATIONS = (
    ("cloud", "en"),
    ("cloud", "he"),
    ("cloud", "godfather"),
    ("green", "en"),
    ("green", "he"),
)
"""Provider and name of each; in ``godfather`` a client asks what only the owner may know."""

FILES = {"receipt.pdf": "application/pdf"}
"""The files that recorded messages name and that are here, with their types."""


def recorded_file(name: str) -> bytes:
    """Return the content of one of FILES."""
    folder = resources.files("memoryproject.foundation.integrations.loopback") / "payloads"
    return (folder / name).read_bytes()


def with_files_at(
    payload: dict[str, Any], names: Container[str], address_of: Callable[[str], str]
) -> dict[str, Any]:
    """Return a Green API body with another address for its file, if that is one of ``names``."""
    data = mapping(payload.get("messageData"))
    file = mapping(data.get("fileMessageData"))
    name = text_of(file.get("downloadUrl")).rpartition("/")[2]
    if name not in names:
        return payload
    moved = {**data, "fileMessageData": {**file, "downloadUrl": address_of(name)}}
    return {**payload, "messageData": moved}


def conversation(provider: str, name: str) -> list[dict[str, Any]]:
    """Return the webhook bodies of one recorded conversation, in order.

    Times and ids are those of the recording: restamp them. Raises ValueError for a name that is not
    in CONVERSATIONS.
    """
    if (provider, name) not in CONVERSATIONS:
        raise ValueError(f"no recorded conversation {name!r} by {provider!r}")
    folder = resources.files("memoryproject.foundation.integrations.loopback") / "payloads"
    text = (folder / f"{provider}_{name}.json").read_text(encoding="utf-8")
    bodies: list[dict[str, Any]] = json.loads(text)
    return bodies


# Give recorded webhook bodies current times and new ids, so that they can be played again.

_TIMES = ("timestamp", "created_timestamp", "expiration_timestamp", "time")
_GREEN_IDS = ("idMessage", "stanzaId", "quotedMessageId")
_CLOUD_IDS = ("id", "message_id", "original_message_id")


def restamp_cloud(payload: dict[str, Any], now: datetime, unique: str) -> dict[str, Any]:
    """Return a copy with new wamids.

    Its newest time becomes ``now``, and the others keep their distance.
    """

    def renamed(key: str, value: str) -> str:
        if key not in _CLOUD_IDS or not value.startswith("wamid."):
            return value
        digest = hashlib.sha256(f"{unique}\n{value}".encode()).digest()
        return "wamid." + base64.b64encode(digest).decode()

    return _restamped(payload, now, renamed)


def restamp_green(payload: dict[str, Any], now: datetime, unique: str) -> dict[str, Any]:
    """Return a copy with new message ids; its newest time becomes ``now``."""

    def renamed(key: str, value: str) -> str:
        if key not in _GREEN_IDS or not value:
            return value
        digest = hashlib.sha256(f"{unique}\n{value}".encode()).hexdigest()
        return digest[:32].upper()

    return _restamped(payload, now, renamed)


def _restamped(
    payload: dict[str, Any], now: datetime, renamed: Callable[[str, str], str]
) -> dict[str, Any]:
    newest = max(_times_in(payload), default=0)
    shift = int(now.timestamp()) - newest

    def changed(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(name, member) for name, member in value.items()}
        if isinstance(value, list):
            return [changed(key, member) for member in value]
        seconds = _seconds(key, value)
        if seconds is not None:
            return str(seconds + shift) if isinstance(value, str) else seconds + shift
        return renamed(key, value) if isinstance(value, str) else value

    return {name: changed(name, member) for name, member in payload.items()}


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
