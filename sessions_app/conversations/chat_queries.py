"""Find chats by name or address."""

from __future__ import annotations

from uuid import UUID

from sessions_app.models import Chat, ChatAddress


def chat_at(whatsapp_chat: str) -> Chat | None:
    """Return the chat of this name, or the chat whose person is now reached at this address."""
    chat = Chat.objects.filter(whatsapp_chat=whatsapp_chat).first()
    if chat is not None:
        return chat
    addresses = ChatAddress.objects.filter(address=whatsapp_chat, left_at__isnull=True)
    address = addresses.select_related("chat").first()
    return None if address is None else address.chat


def chat_name(chat_id: UUID) -> str | None:
    """Return the name by which integrators know the chat; None if it is deleted."""
    return Chat.objects.filter(pk=chat_id).values_list("whatsapp_chat", flat=True).first()
