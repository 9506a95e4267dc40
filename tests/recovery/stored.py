"""What an import has stored, and a chat that was there before."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sessions_app.models import Chat, ChatAddress, ChatSession, Message, MessageEmbedding
from tests.recovery.old_files import CLIENT, NOW


def stored(session_id: str) -> list[Message]:
    return list(Message.objects.filter(session_id=session_id).order_by("order_num"))


def everything() -> list[Any]:
    """All that an import writes, by value."""
    models = (Chat, ChatAddress, ChatSession, Message, MessageEmbedding)
    return [list(model.objects.order_by("pk").values()) for model in models]


def known_chat(**values: Any) -> Chat:
    """The client's chat, as a webhook would have made it."""
    chat = Chat.objects.create(whatsapp_chat=CLIENT, provider="cloud", number_id="1", **values)
    ChatAddress.objects.create(chat=chat, provider="cloud", address=CLIENT)
    return chat


def at(hours_ago: float) -> str:
    return (NOW - timedelta(hours=hours_ago)).isoformat()
