"""Recorded conversations that are part of the project, for the demo."""

from __future__ import annotations

import json
from collections.abc import Callable, Container
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
