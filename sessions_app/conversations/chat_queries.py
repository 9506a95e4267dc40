"""Find chats by name or address."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from sessions_app.models import Chat, ChatAddress


def chat_at(whatsapp_chat: str) -> Chat | None:
    """Return the chat of this id, in any spelling: its name, or an address of its person now.

    Older chats may have names that no chat can get any more: they are found by the exact name.
    """
    return next(filter(None, map(_chat_stored_at, stored_names(whatsapp_chat))), None)


def stored_names(whatsapp_chat: str) -> list[str]:
    """Return the names under which a chat with this id may be stored, the proper one first."""
    try:
        proper = whatsapp_chat_normalise(whatsapp_chat)
    except WhatsAppChatError:
        return [whatsapp_chat]
    return list(dict.fromkeys([proper, whatsapp_chat]))


def address_searched(text: str) -> str:
    """Return what a search by parts of addresses looks for: a whole id in its stored form."""
    if "@" not in text:
        return text.lstrip("+") or text
    return stored_names(text)[0]


def _chat_stored_at(whatsapp_chat: str) -> Chat | None:
    chat = Chat.objects.filter(whatsapp_chat=whatsapp_chat).first()
    if chat is not None:
        return chat
    addresses = ChatAddress.objects.filter(address=whatsapp_chat, left_at__isnull=True)
    address = addresses.select_related("chat").first()
    return None if address is None else address.chat


def chat_name(chat_id: UUID) -> str | None:
    """Return the name by which integrators know the chat; None if it is deleted."""
    return Chat.objects.filter(pk=chat_id).values_list("whatsapp_chat", flat=True).first()
