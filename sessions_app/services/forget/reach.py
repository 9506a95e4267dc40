"""Where memories were told: in whose answers they were in reach, and which lists showed them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

# In a turn's context: the ids of the memories that its answer lists.
SHOWN = "shown"

_IN_REACH = """
SELECT DISTINCT turn.chat_id, told.id
FROM sessions_app_turn AS turn, LATERAL (
    SELECT hit->>'id' AS id FROM jsonb_array_elements(turn.recalled) AS hit
    UNION ALL SELECT jsonb_array_elements_text(turn.context->'shown')
) AS told
WHERE told.id = ANY(%s)
"""


def told_where(memory_ids: Iterable[UUID]) -> dict[UUID, set[UUID]]:
    """For each chat that may have been told of any of these memories, of which."""
    keys = [str(key) for key in memory_ids]
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_IN_REACH, [keys])
        found = cursor.fetchall()
    where: dict[UUID, set[UUID]] = {}
    for chat_id, memory_id in found:
        where.setdefault(chat_id, set()).add(UUID(memory_id))
    return where
