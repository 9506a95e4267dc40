"""Which chat a memory belongs to."""

from __future__ import annotations

from uuid import UUID

from memories_app.models import Memory


def memories_move(*, from_chat: UUID, to_chat: UUID) -> int:
    """Give all memories of one chat to another; returns how many."""
    return Memory.objects.filter(chat_id=from_chat).update(chat_id=to_chat)
