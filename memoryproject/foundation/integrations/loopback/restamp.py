"""Give recorded webhook bodies current times and new ids, so that they can be played again.

The same ``unique`` maps an id to the same new id in every body: a status, an edit or a reaction
still names its message. Another ``unique`` makes another conversation from the same recording.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

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
