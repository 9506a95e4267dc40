"""The messages next to a message: the question before an answer, the answer after a question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from memoryproject.foundation.text.characters import cut_at_word
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


def placed(messages: QuerySet[Message]) -> QuerySet[Message]:
    """Annotate each line with its ``place``."""
    return messages.annotate(place=Coalesce("answers__order_num", "order_num"))


def lines_around(
    messages: QuerySet[Message], spans: Sequence[Span], *, beside: Sequence[UUID]
) -> QuerySet[Message]:
    """Return the lines that may be placed in these spans, and the lines that they surround.

    The lines are taken from ``messages`` and have their ``place``; ``beside`` are the lines that
    they surround. The caller filters by place.
    """
    places = {(session, place) for session, low, high in spans for place in range(low, high + 1)}
    sessions, numbers = [session for session, _ in places], [place for _, place in places]
    keys = _KEYS.format(table=Message._meta.db_table)
    params = (sessions, numbers, list(beside))
    return placed(messages.filter(pk__in=RawSQL(keys, params)))  # noqa: S611 the table is our own


MAX_NEIGHBOUR_LENGTH = 200

# Commands and the like may stand between two messages; beyond this distance they are no
# neighbours.
REACH = 6


@dataclass(frozen=True)
class Around:
    """The messages before and after one, in the conversation's order; None if there is none."""

    before: Message | None = None
    after: Message | None = None

    def as_dict(self) -> dict[str, dict[str, str]]:
        """Return "before" and "after", shortened, as far as they exist, for a hit's metadata."""
        there = {"before": self.before, "after": self.after}
        return {name: _shown(message) for name, message in there.items() if message}


def neighbours_of(
    message_ids: Sequence[UUID], *, messages: QuerySet[Message]
) -> Mapping[UUID, Around]:
    """Return the neighbours of some messages among the visible ones, ``messages``, in two queries.

    A message that is itself in the list, or is the neighbour of an earlier one, is not
    repeated. An answer stands with its question, whatever was said in between.
    """
    if not message_ids:
        return {}
    near, spans = Q(), []
    found_there = placed(messages).filter(pk__in=message_ids)
    for session_id, place in found_there.values_list("session_id", "place"):
        near |= Q(session_id=session_id, place__range=(place - REACH, place + REACH))
        spans.append((session_id, place - REACH, place + REACH))
    in_order = ("session_id", "place", F("answers").asc(nulls_first=True), "order_num")
    shown = messages.only("message_id", "session_id", "role", "content")
    around = lines_around(shown, spans, beside=message_ids).filter(near)
    lines = list(around.order_by(*in_order)) if near else []
    taken = set(message_ids)
    found = {}
    for message_id in message_ids:
        around = _around(message_id, lines, taken)
        taken |= {message.pk for message in (around.before, around.after) if message}
        found[message_id] = around
    return found


def _around(message_id: UUID, lines: Sequence[Message], taken: Collection[UUID]) -> Around:
    """Return the messages before and after a message that were not returned yet."""
    place = next((n for n, line in enumerate(lines) if line.pk == message_id), None)
    if place is None:
        return Around()

    def current_neighbours(other: int) -> Message | None:
        if not 0 <= other < len(lines) or lines[other].pk in taken:
            return None
        return lines[other] if lines[other].session_id == lines[place].session_id else None

    return Around(current_neighbours(place - 1), current_neighbours(place + 1))


def _shown(message: Message) -> dict[str, str]:
    return {
        "message_id": str(message.pk),
        "role": message.role,
        "content": cut_at_word(message.content, MAX_NEIGHBOUR_LENGTH),
    }
