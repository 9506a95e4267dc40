"""Search for a text as staff do, and list the indexes that recall and search use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import connection

from memories_app.search.facade import memories_for_staff, memories_with_words
from sessions_app.models import Message
from sessions_app.recall.facade import newest_messages_found

RECALLED_TABLES = (
    "memories_app_memory",
    "memories_app_memoryembedding",
    "sessions_app_message",
    "sessions_app_messageembedding",
)


def memories_found(text: str, *, most: int) -> list[UUID]:
    """Return the newest memories that staff find by these words."""
    found = memories_with_words(memories_for_staff(), text).order_by("-created_at", "memory_id")
    return list(found.values_list("pk", flat=True)[:most])


def messages_found(text: str, chats: Collection[UUID], *, most: int) -> list[Message]:
    """Return the newest messages of these chats that staff find by these words."""
    return newest_messages_found(Message.objects.filter(chat__in=list(chats)), text, 0, most)


def indexes_of(tables: Sequence[str]) -> list[str]:
    """Return the indexes of words and vectors on these tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND tablename = ANY(%s) AND indexdef ~ 'USING (gin|hnsw|ivfflat)'",
            [list(tables)],
        )
        return [name for (name,) in cursor.fetchall()]
