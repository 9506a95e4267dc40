"""Folders of old sessions, as the tests need them: both generations of field names."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

NOW = datetime(2026, 1, 18, 12, 0, tzinfo=timezone.utc)
BOT = "15550100001@c.us"
CLIENT = "15550100123@c.us"
OTHER_CLIENT = "15550100456@c.us"


def new_id() -> str:
    return str(uuid.uuid4())


def message(number: int, content: str = "", **changes: Any) -> dict[str, Any]:
    """A message's document, of the user where the number is odd; a minute apart. Changes to
    ... leave a field out."""
    at = (NOW - timedelta(hours=2) + timedelta(minutes=number)).isoformat()
    asks = number % 2 == 1
    document = {
        "message_id": new_id(),
        "order_num": number,
        "role": "user" if asks else "assistant",
        "content": content or f"message {number}",
        "sender": CLIENT if asks else "assistant",
        "recipient": BOT if asks else CLIENT,
        "timestamp": at,
        "received_at": at,
        "was_received": True,
        "tokens": 2,
        "image_path": None,
    }
    return changed(document, changes)


def changed(document: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = {**document, **changes}
    return {name: value for name, value in merged.items() if value is not ...}


@dataclass
class OldFolder:
    """A folder as the old program left it."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "messages").mkdir(parents=True)

    def add(
        self, files: Sequence[dict[str, Any]] = (), /, *, folder: str = "", **changes: Any
    ) -> str:
        """A session of the newer generation with its messages' files; returns its id."""
        session_id = str(changes.get("session_id") or new_id())
        document = {
            "session_id": session_id,
            "whatsapp_chat": CLIENT,
            "client_name": "Test User",
            "message_counter": len(files),
            "message_ids": [one["message_id"] for one in files],
            "created_at": (NOW - timedelta(hours=2)).isoformat(),
            "last_active": (NOW - timedelta(hours=1)).isoformat(),
            "total_tokens": 0,
        }
        for one in files:
            self.add_message({"session_id": session_id, **one})
        self.write(f"{folder}/{session_id}.json".strip("/"), changed(document, changes))
        return session_id

    def add_message(self, document: dict[str, Any]) -> Path:
        return self.write(f"messages/{document['message_id']}.json", document)

    def write(self, name: str, document: object) -> Path:
        """A file of this folder: bytes as they are, anything else as JSON."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        path.write_bytes(body)
        return path
