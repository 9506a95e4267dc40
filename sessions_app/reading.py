"""How a stored message reads: for a prompt, a summary or a passage."""

from __future__ import annotations

from sessions_app.models import Message
from sessions_app.models.messages import Role
from sessions_app.roles import CLIENT

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


def is_knowledge(message: Message) -> bool:
    """Whether it says anything: commands and what the system itself says don't."""
    return bool(message.content.strip()) and not (
        {"command", "system_text"} & message.metadata.keys()
    )
