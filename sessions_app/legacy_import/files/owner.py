"""Find the chat of a session whose file is lost (RECOVERY-001)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app.legacy_import.files.errors import LegacyError
from sessions_app.legacy_import.files.gather import FoundMessage
from sessions_app.legacy_import.files.ids import is_whatsapp_chat


def whatsapp_chat_of(found: Sequence[FoundMessage]) -> str:
    """Return the chat that these messages of one session agree on.

    It is a group if one is named, else the person who wrote to the assistant or received its
    messages.

    Raises LegacyError if they name none or several: a guess could show one person's
    conversation to another.
    """
    messages = [one.legacy for one in found]
    named = _chats(one.session_ref for one in messages)
    asking = _chats(one.sender for one in messages if one.role == "user")
    answered = _chats(one.recipient for one in messages if one.role == "assistant")
    everybody = _chats(address for one in messages for address in (one.sender, one.recipient))
    groups = {address for address in everybody if address.endswith("@g.us")}
    chats = named or groups or asking | answered
    if len(chats) != 1:
        how_many = "several WhatsApp chats" if chats else "no WhatsApp chat"
        raise LegacyError(f"sender, recipient: its messages name {how_many}")
    return next(iter(chats))


def _chats(texts: Iterable[str]) -> set[str]:
    """Return the stored forms of the texts that are ids of chats."""
    found = set()
    for text in filter(is_whatsapp_chat, texts):
        with suppress(WhatsAppChatError):
            found.add(whatsapp_chat_normalise(text))
    return found
