"""Which chat a memory belongs to."""

from __future__ import annotations

from uuid import UUID

from memories_app.models import Memory
from memories_app.services.documents import documents_move


def memories_move(*, from_chat: UUID, to_chat: UUID) -> int:
    """Give all memories of one chat to another; returns how many."""
    documents_move(from_chat=from_chat, to_chat=to_chat)
    return Memory.objects.filter(chat_id=from_chat).update(chat_id=to_chat)
