"""Record when the last message of a chat was said, also under concurrent writes.

The callers' transactions already hold the session's lock: the row of a chat's activity is
always locked after its sessions.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection

from sessions_app.models import Chat, ChatActivity, Message
from sessions_app.models.messages import Role

ACTIVITY, CHATS = ChatActivity._meta.db_table, Chat._meta.db_table
MESSAGES = Message._meta.db_table

# Of two concurrent writers the later time stays, in whatever order they commit.
SAID = f"""
INSERT INTO {ACTIVITY} AS kept (chat_id, last_at) VALUES (%s, %s)
ON CONFLICT (chat_id) DO UPDATE SET last_at = excluded.last_at WHERE kept.last_at < excluded.last_at
"""  # noqa: S608 constants only
# Order by time: of two concurrent messages the later one may have waited less and have the lower
# number.
RECOUNT = f"""
INSERT INTO {ACTIVITY} (chat_id, last_at)
SELECT chat.id, coalesce(said.received_at, chat.created_at) FROM {CHATS} AS chat
LEFT JOIN LATERAL (
    SELECT received_at FROM {MESSAGES} AS own
    WHERE own.chat_id = chat.id AND own.role <> %s ORDER BY received_at DESC LIMIT 1
) AS said ON true
WHERE chat.id = ANY(%s)
ON CONFLICT (chat_id) DO UPDATE SET last_at = excluded.last_at
"""  # noqa: S608 constants only


def activity_record(*, chat_id: UUID, at: datetime) -> None:
    """Record that something was said in the chat, or that the chat was created."""
    with connection.cursor() as cursor:
        cursor.execute(SAID, [chat_id, at])


def activity_recount(*, chat_ids: Collection[UUID]) -> None:
    """Compute the activity again from the stored messages.

    Call it after messages were deleted, moved here from another chat, or imported from old
    files.
    """
    wanted = sorted(set(chat_ids))
    # Lock before the read, so that no concurrent message is missed.
    rows = ChatActivity.objects.select_for_update().filter(chat__in=wanted).order_by("chat")
    list(rows.values_list("chat", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(RECOUNT, [Role.SUMMARY, wanted])
