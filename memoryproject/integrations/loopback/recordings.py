"""Recorded conversations that ship with the project, for the demo."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

PROVIDERS = ("cloud", "green")
CONVERSATIONS = (
    ("cloud", "en"),
    ("cloud", "he"),
    ("cloud", "godfather"),
    ("green", "en"),
    ("green", "he"),
)
"""Provider and name of each; in ``godfather`` a client asks what only the owner may know."""


def conversation(provider: str, name: str) -> list[dict[str, Any]]:
    """The webhook bodies of one recorded conversation, in order.

    Times and ids are those of the recording: restamp them. Raises ValueError for one that is
    not among CONVERSATIONS.
    """
    if (provider, name) not in CONVERSATIONS:
        raise ValueError(f"no recorded conversation {name!r} by {provider!r}")
    folder = resources.files("memoryproject.integrations.loopback") / "payloads"
    text = (folder / f"{provider}_{name}.json").read_text(encoding="utf-8")
    bodies: list[dict[str, Any]] = json.loads(text)
    return bodies
