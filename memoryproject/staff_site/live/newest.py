"""Read a state of the database that differs after each change shown by the inbox and by open
conversations."""

from __future__ import annotations

from typing import Any

from django.db import connection

from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.models import MediaFile, Message, Turn

# As many rows are looked at, so that a row counts though a later one was committed before it.
LOOKED_AT = 100
# What staff or integrators did, except for reading: each page that reads would cause the next.
QUESTION = f"""
SELECT
  (SELECT string_agg(concat_ws(' ', m.message_id, m.version, f.state), ',')
     FROM (SELECT message_id, xmin AS version FROM {Message._meta.db_table}
            ORDER BY received_at DESC, order_num DESC LIMIT {LOOKED_AT}) AS m
     LEFT JOIN {MediaFile._meta.db_table} AS f USING (message_id)),
  (SELECT string_agg(concat_ws(' ', id, state), ',')
     FROM (SELECT id, state FROM {Turn._meta.db_table}
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS t),
  (SELECT max(id)
     FROM (SELECT id, actor_kind, action FROM {AuditEvent._meta.db_table}
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS e
    WHERE actor_kind IN ('staff', 'api') AND action <> 'conversation.read')
"""  # noqa: S608 names of tables


def newest() -> tuple[Any, ...]:
    """Return the newest messages, answers and acts of staff, with one query that reads by index.

    ``xmin`` is PostgreSQL's own number of a row's version: it changes with each update.
    """
    with connection.cursor() as cursor:
        cursor.execute(QUESTION)
        row: tuple[Any, ...] = cursor.fetchone()
        return row
