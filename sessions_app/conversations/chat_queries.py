"""Finds chats by what people call them."""

from __future__ import annotations

from uuid import UUID

from sessions_app.models import Chat, ChatAddress


def chat_at(whatsapp_chat: str) -> Chat | None:
    """The chat of this name, or whose person is reached at this address now."""
    chat = Chat.objects.filter(whatsapp_chat=whatsapp_chat).first()
    if chat is not None:
        return chat
    addresses = ChatAddress.objects.filter(address=whatsapp_chat, left_at__isnull=True)
    address = addresses.select_related("chat").first()
    return None if address is None else address.chat


def chat_name(chat_id: UUID) -> str | None:
    """Under which name integrators know it; None where it is gone."""
    return Chat.objects.filter(pk=chat_id).values_list("whatsapp_chat", flat=True).first()
