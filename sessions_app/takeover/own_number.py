"""Name one of our numbers, and choose the one that writes to a chat."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.models import Chat
from sessions_app.models.chats import Provider


@dataclass(frozen=True)
class OwnNumber:
    """One of our numbers, at its provider."""

    provider: str
    number_id: str = ""


def number_of(chat: Chat, otherwise: OwnNumber) -> OwnNumber:
    """Return which of our numbers sends a reply."""
    if chat.provider == str(Provider.CONSOLE):
        return otherwise
    return OwnNumber(chat.provider, chat.number_id)
