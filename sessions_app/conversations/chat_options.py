"""Options of commands that name a chat."""

from __future__ import annotations

from django.core.management.base import CommandError

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)


def chat_option(text: str, *, option: str) -> str:
    """Return the stored form of a chat's id. Raises CommandError with exit code 2."""
    try:
        return whatsapp_chat_normalise(text)
    except WhatsAppChatError as error:
        raise CommandError(f"{option}: {error}", returncode=2) from error
