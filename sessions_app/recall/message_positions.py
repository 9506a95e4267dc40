"""Find the lines at some places of sessions by the index of a session's lines.

A line's place is its ``order_num``; an answer's is that of its question. No index holds the
place, so a filter on it alone would read the whole conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from sessions_app.models import Message

# A session's id, and its first and last place.
Span: TypeAlias = tuple[UUID, int, int]

# Each place separately: PostgreSQL expects many lines in a range, and then reads all of them.
_KEYS = """
WITH there AS MATERIALIZED (
    SELECT line.message_id FROM unnest(%s::uuid[], %s::int[]) AS places (session_id, order_num)
    JOIN {table} line USING (session_id, order_num)
)
SELECT message_id FROM there
UNION SELECT answer.message_id FROM there JOIN {table} answer
  ON answer.answers_id = there.message_id
UNION SELECT unnest(%s::uuid[])
"""


def placed(said: QuerySet[Message]) -> QuerySet[Message]:
    """Annotate each line with its ``place``."""
    return said.annotate(place=Coalesce("answers__order_num", "order_num"))


def lines_around(
    said: QuerySet[Message], spans: Sequence[Span], *, beside: Sequence[UUID]
) -> QuerySet[Message]:
    """Return the lines that are or may be placed in these spans, and ``beside``, with their place.

    The lines are taken from ``said``. ``beside`` are the lines that the spans surround. The
    caller filters by ``place``.
    """
    places = {(session, place) for session, low, high in spans for place in range(low, high + 1)}
    sessions, numbers = [session for session, _ in places], [place for _, place in places]
    keys = _KEYS.format(table=Message._meta.db_table)
    params = (sessions, numbers, list(beside))
    return placed(said.filter(pk__in=RawSQL(keys, params)))  # noqa: S611 the table is our own
