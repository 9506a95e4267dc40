"""How a stored message reads: for a prompt, a summary, a passage or a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoryproject.foundation.text.terms import IndexedText, index_text
from sessions_app.models import Message
from sessions_app.models.messages import Role
from sessions_app.models.roles import CLIENT

WITH_TEXT_ALONE = ("text", "interactive", "button")


def text_of(message: Message) -> str:
    """Its content; what isn't text says so."""
    if message.kind in WITH_TEXT_ALONE:
        return message.content
    return f"[{message.kind}] {message.content}".strip()


def speaker_of(message: Message, *, user_role: str = CLIENT) -> str:
    """Who said it; in a group by name."""
    if message.role != Role.USER:
        return str(message.role)
    return str(message.metadata.get("sender_name") or user_role)


def indexed_of(content: str, metadata: Mapping[str, Any]) -> IndexedText:
    """By which words it is found. In a group whose line it is counts as if the line said it:
    "What is Dana allergic to?" asks for Dana's "I'm allergic to walnuts"."""
    name = metadata.get("sender_name")
    return index_text(f"{name}: {content}" if name and content else content)


def is_knowledge(message: Message) -> bool:
    """Whether it says anything: commands and what the system itself says don't."""
    return bool(message.content.strip()) and not (
        {"command", "system_text"} & message.metadata.keys()
    )
