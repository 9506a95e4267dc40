"""Read a chat's whole conversation, over all its sessions, page by page.

Messages are ordered by the start of their session, then by order_num. A page reads as many rows
at the end of a million messages as at the end of a hundred.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from django.db import connection

from memoryproject.foundation.tables import read_statements
from sessions_app.models import Chat, Message
from sessions_app.recall.facade import messages_with_parts, newest_messages_found

PAGE = 50
FOUND = 50
# The index finds whole words; a part of a word needs a scan of the texts.
PARTS_AMONG = 20_000

OLDER = read_statements(__file__, reach="<", order="DESC")["walk"]
NEWER = read_statements(__file__, reach=">", order="ASC")["walk"]
FROM_DAY = read_statements(__file__)["from_day"]


@dataclass(frozen=True, order=True)
class Place:
    """The position of a message in its chat. Of two messages the later one has the larger place."""

    began_at: datetime
    session_id: UUID
    order_num: int

    @classmethod
    def of(cls, message: Message) -> "Place":
        """Return the place of a message, whose session is loaded with it."""
        return cls(message.session.created_at, message.session_id, message.order_num)

    def just_before(self) -> "Place":
        return replace(self, order_num=self.order_num - 1)

    def just_after(self) -> "Place":
        return replace(self, order_num=self.order_num + 1)


BEGINNING = Place(datetime.min.replace(tzinfo=timezone.utc), UUID(int=0), 0)
END = Place(datetime.max.replace(tzinfo=timezone.utc), UUID(int=2**128 - 1), 2**31 - 1)


@dataclass(frozen=True)
class TimelinePage:
    """Messages in order, with their sessions. ``older`` and ``newer``: there are more."""

    messages: list[Message]
    older: bool
    newer: bool


def place_of(chat: Chat, message_id: UUID | None) -> Place | None:
    """Return the position of a message; None if the chat doesn't have it (any more)."""
    if message_id is None:
        return None
    message = Message.objects.filter(chat=chat, pk=message_id).select_related("session").first()
    if message is None:
        return None
    return Place.of(message)


def page_before(chat: Chat, place: Place = END) -> TimelinePage:
    """Return the messages before a place; without one, the newest."""
    keys = _walk(OLDER, chat, place, PAGE + 1)
    newer = place != END and bool(_walk(NEWER, chat, place.just_before(), 1))
    return TimelinePage(_read(keys[:PAGE][::-1]), older=len(keys) > PAGE, newer=newer)


def page_after(chat: Chat, place: Place) -> TimelinePage:
    """Return the messages after a place."""
    keys = _walk(NEWER, chat, place, PAGE + 1)
    older = bool(_walk(OLDER, chat, place.just_after(), 1))
    return TimelinePage(_read(keys[:PAGE]), older=older, newer=len(keys) > PAGE)


def page_around(chat: Chat, place: Place) -> TimelinePage:
    """Return the message with the messages before and after it."""
    before = _walk(OLDER, chat, place, PAGE // 2 + 1)
    after = _walk(NEWER, chat, place.just_before(), PAGE // 2 + 1)
    keys = [*before[: PAGE // 2][::-1], *after[: PAGE // 2]]
    return TimelinePage(_read(keys), len(before) > PAGE // 2, len(after) > PAGE // 2)


def first_since(chat: Chat, at: datetime) -> UUID | None:
    """Return the first message at this time or later."""
    with connection.cursor() as cursor:
        cursor.execute(FROM_DAY, {"chat": chat.pk, "at": at})
        row = cursor.fetchone()
    return row[0] if row else None


def messages_found(chat: Chat, text: str, *, parts_among: int = PARTS_AMONG) -> list[Message]:
    """Return the newest messages that match the text.

    A match has all its words in any form, in any language. Among the chat's newest
    ``parts_among`` messages, the exact text also matches within a word.
    """
    messages = chat.messages.all()
    found = {message.pk: message for message in newest_messages_found(messages, text, 0, FOUND)}
    part = messages_with_parts(messages, text, recent=parts_among)
    if part is not None:
        newest = messages.filter(part).defer("terms").order_by("-received_at", "-order_num")
        found.update((message.pk, message) for message in newest[:FOUND])
    in_order = sorted(found.values(), key=lambda one: (one.received_at, one.order_num))
    return in_order[::-1][:FOUND]


def _walk(sql: str, chat: Chat, place: Place, limit: int) -> list[UUID]:
    values: dict[str, Any] = {
        "chat": chat.pk,
        "began_at": place.began_at,
        "session": place.session_id,
        "order_num": place.order_num,
        "limit": limit,
        # One more than needed: the session of the place itself may have none left.
        "sessions": limit + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [key for (key,) in cursor.fetchall()]


def _read(keys: Iterable[UUID]) -> list[Message]:
    wanted = list(keys)
    related = ("session", "summarization")
    found = Message.objects.filter(pk__in=wanted).select_related(*related).defer("terms").in_bulk()
    return [found[key] for key in wanted if key in found]
