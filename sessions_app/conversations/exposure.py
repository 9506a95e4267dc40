"""Find the chats that a memory was exposed to, by answers, trials or lists that showed it."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from sessions_app.models.trials import TRIED_IDS
from sessions_app.models.turns import RECALLED_IDS

_IN_REACH = f"""
SELECT DISTINCT turn.chat_id, told.id
FROM sessions_app_turnreplay AS replay
JOIN sessions_app_turn AS turn ON turn.id = replay.turn_id,
LATERAL jsonb_array_elements_text({RECALLED_IDS}) AS told (id)
WHERE ({RECALLED_IDS}) ?| %(keys)s AND told.id = ANY(%(keys)s)
UNION
SELECT turn.chat_id, told.id
FROM sessions_app_answertrial AS trial
JOIN sessions_app_turn AS turn ON turn.id = trial.turn_id,
LATERAL jsonb_array_elements_text({TRIED_IDS}) AS told (id)
WHERE ({TRIED_IDS}) ?| %(keys)s AND told.id = ANY(%(keys)s)
"""  # noqa: S608 constants only


def exposure_of(memory_ids: Iterable[UUID]) -> dict[UUID, set[UUID]]:
    """Return for each chat the memories, out of these, that may have been exposed to it."""
    keys = [str(key) for key in memory_ids]
    if not keys:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_IN_REACH, {"keys": keys})
        found = cursor.fetchall()
    where: dict[UUID, set[UUID]] = {}
    for chat_id, memory_id in found:
        where.setdefault(chat_id, set()).add(UUID(memory_id))
    return where
