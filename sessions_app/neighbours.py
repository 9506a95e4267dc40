"""What was said around a message: the question before an answer, the answer after a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce

from memoryproject.lib.shorten import cut_at_word
from sessions_app.models import Message

LONGEST_NEIGHBOUR = 200
# Commands and the like may stand between two messages; beyond this they are no neighbours.
REACH = 6


@dataclass(frozen=True)
class Around:
    """The messages before and after one, in the conversation's order, None where there is
    none to show."""

    before: Message | None = None
    after: Message | None = None

    def as_dict(self) -> dict[str, dict[str, str]]:
        """For a hit's metadata: what there is of "before" and "after", shortened."""
        there = {"before": self.before, "after": self.after}
        return {name: _shown(message) for name, message in there.items() if message}


@dataclass
class _Conversation:
    """The messages of one session in the order in which they are read."""

    messages: list[Message] = field(default_factory=list)

    def around(self, message_id: UUID) -> Around:
        keys = [message.pk for message in self.messages]
        if message_id not in keys:
            return Around()
        place = keys.index(message_id)
        before = self.messages[place - 1] if place else None
        after = self.messages[place + 1] if place + 1 < len(keys) else None
        return Around(before, after)


def neighbours_of(messages: Sequence[Message], *, said: QuerySet[Message]) -> Mapping[UUID, Around]:
    """The neighbours of each of ``messages`` among what may be seen, ``said``, in one query.

    A message that stands in ``messages`` itself or beside an earlier one of them is not told
    again. An answer stands with its question, whatever was said in between.
    """
    if not messages:
        return {}
    placed = said.annotate(place=Coalesce("answers__order_num", "order_num"))
    conversations: dict[UUID, _Conversation] = {}
    for message in (
        placed.filter(_near(messages))
        .defer("terms")
        .order_by("session_id", "place", F("answers").asc(nulls_first=True), "order_num")
    ):
        conversations.setdefault(message.session_id, _Conversation()).messages.append(message)
    told = {message.pk for message in messages}
    found = {}
    for message in messages:
        around = conversations.get(message.session_id, _Conversation()).around(message.pk)
        before = around.before if around.before and around.before.pk not in told else None
        after = around.after if around.after and around.after.pk not in told else None
        told |= {neighbour.pk for neighbour in (before, after) if neighbour}
        found[message.pk] = Around(before, after)
    return found


def _near(messages: Sequence[Message]) -> Q:
    """Within reach of one of the messages; an answer is reached through its question."""
    near = Q()
    for message in messages:
        place = message.answers.order_num if message.answers else message.order_num
        near |= Q(session_id=message.session_id, place__range=(place - REACH, place + REACH))
    return near


def _shown(message: Message) -> dict[str, str]:
    return {
        "message_id": str(message.pk),
        "role": message.role,
        "content": cut_at_word(message.content, LONGEST_NEIGHBOUR),
    }
