"""Read markers: find the last seen place in each chat, and the messages after it.

A marker is a place in the conversation, not a time: if two messages are stored at the same moment,
neither is skipped. Every query covers many chats at once.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from string import Template
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Exists, Func, OuterRef, Q, QuerySet
from django.db.models.sql.compiler import SQLCompiler

from memoryproject.foundation.replica import read_connection
from memoryproject.foundation.tables import read_statements
from sessions_app import models
from sessions_app.conversations.timeline import BEGINNING, Place
from sessions_app.models.messages import Role
from sessions_app.models.review import UpTo

# More new messages than this are shown as "99+".
MAX_UNREAD = 100

# For readers only a person's messages are new; for reviewers the answers are, too.
FROM_PEOPLE = (Role.USER,)
SAID = (Role.USER, Role.ASSISTANT, Role.SYSTEM, Role.TOOL)

# A message's id and its place.
Found = tuple[UUID, Place]

_SQL = read_statements(__file__)


def old_messages_seen(*, chat_id: UUID, sessions: Collection[models.ChatSession]) -> None:
    """Let the messages of these sessions, which are from before this server, be no news."""
    last = max(sessions, key=lambda session: (session.created_at, session.pk))
    place = (last.created_at, last.pk, last.message_counter)
    with connection.cursor() as cursor:
        cursor.execute(
            _SQL["old_are_seen"], [chat_id, *place, [session.pk for session in sessions]]
        )


def place_marked(mark: UpTo | None) -> Place:
    """Return the place of a marker; the beginning if there is none."""
    if mark is None:
        return BEGINNING
    return Place(mark.began_at, mark.session_key, mark.order_num)


def place_fields(place: Place) -> dict[str, object]:
    """Return the fields of a marker at this place."""
    return {
        "began_at": place.began_at,
        "session_key": place.session_id,
        "order_num": place.order_num,
    }


def news_count(marks: Mapping[UUID, Place], roles: Collection[str], most: int) -> dict[UUID, int]:
    """Count the messages after each chat's marker, at most ``most``.

    Chats without new messages are left out.
    """
    return dict(_ask(_SQL["counts"], *_columns(marks), list(roles), most))


def news_first(marks: Mapping[UUID, Place], roles: Collection[str]) -> dict[UUID, Found]:
    """Return the first message after each chat's marker; chats without one are left out."""
    return _found(_ask(_SQL["first"], *_columns(marks), list(roles)))


def last_message_place(
    chat_ids: Collection[UUID], roles: Collection[str] = SAID
) -> dict[UUID, Found]:
    """Return the last message of each chat; chats without one are left out."""
    return _found(_ask(_SQL["last"], list(chat_ids), list(roles)))


class OfChat(Func):
    """A condition on a chat, in SQL; ``chat``: the field with the chat's key."""

    output_field = BooleanField()

    def __init__(self, chat: str, sql: str, values: list[Any]) -> None:
        super().__init__(chat)
        self.sql, self.values = sql, values

    def as_sql(  # type: ignore[override]
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        # A column, which has no parameters.
        chat, _ = compiler.compile(self.get_source_expressions()[0])
        return Template(self.sql).substitute(chat=chat), self.values


def news_there(roles: Collection[str], *, chat: str) -> OfChat:
    """Match the few rows whose chat has a message after its review; without one, any message."""
    return OfChat(chat, _SQL["news_there"], [list(roles)])


def news_since(
    marks: type[models.ReadMark | models.ReviewedMark],
    roles: Collection[str],
    user: User | None = None,
) -> OfChat:
    """Match chats that have a marker and a message after it. ``user``: the markers' owner."""
    whose, values = ("", []) if user is None else ("WHERE mark.user_id = %s", [user.pk])
    sql = Template(_SQL["news_since"]).safe_substitute(kind=marks._meta.db_table, whose=whose)
    return OfChat("pk", sql, [list(roles), *values])


def chats_with_news(
    marks: type[models.ReadMark | models.ReviewedMark],
    roles: Collection[str],
    user: User | None = None,
) -> Q:
    """Match chats with a message after their marker, or with any where there is no marker."""
    of_chat: QuerySet[Any] = marks._default_manager.filter(chat=OuterRef("pk"))
    marked = Exists(of_chat if user is None else of_chat.filter(user=user))
    has_messages = OfChat("pk", _SQL["said_there"], [list(roles)])
    return Q(news_since(marks, roles, user)) | (~Q(marked) & Q(has_messages))


def _columns(marks: Mapping[UUID, Place]) -> list[list[object]]:
    places = list(marks.values())
    return [
        list(marks),
        [place.began_at for place in places],
        [place.session_id for place in places],
        [place.order_num for place in places],
    ]


def _found(rows: list[tuple[UUID, UUID, datetime, UUID, int]]) -> dict[UUID, Found]:
    return {
        chat: (message, Place(began, session, number))
        for chat, message, began, session, number in rows
    }


def _ask(sql: str, *values: object) -> list[Any]:
    with read_connection().cursor() as cursor:
        cursor.execute(sql, list(values))
        return cursor.fetchall()


# Merge notes and markers when two chats turn out to be one person.


def review_move(*, from_chat: UUID, to_chat: UUID) -> None:
    """Move notes, bookmarks and labels to the remaining chat.

    Of two assignees, the later one stays. A conversation that was put off comes back. Call it
    before the messages are moved, so that nothing unread in either chat is skipped afterwards.
    """
    readers = models.ReadMark.objects.filter(chat__in=[from_chat, to_chat]).values_list(
        "user", flat=True
    )
    for user_id in set(readers):
        _join(models.ReadMark.objects.filter(user=user_id), from_chat, to_chat, FROM_PEOPLE)
    _join(models.ReviewedMark.objects.all(), from_chat, to_chat, SAID)
    models.Note.objects.filter(chat=from_chat).update(chat=to_chat)
    there = models.Bookmark.objects.filter(chat=to_chat, message=None).values("user")
    models.Bookmark.objects.filter(chat=from_chat, message=None, user__in=there).delete()
    models.Bookmark.objects.filter(chat=from_chat).update(chat=to_chat)
    labels = models.ChatLabel.objects.filter(chat=to_chat).values("label")
    models.ChatLabel.objects.filter(chat=from_chat).exclude(label__in=labels).update(chat=to_chat)
    _assignment_move(from_chat, to_chat)
    models.Snooze.objects.filter(chat__in=[from_chat, to_chat]).delete()


def _join(marks: Any, from_chat: UUID, to_chat: UUID, roles: tuple[str, ...]) -> None:
    """Merge two markers: before the first new message of either chat, or else at the later one."""
    own = {mark.chat_id: mark for mark in marks.filter(chat__in=[from_chat, to_chat])}
    if not own:
        return
    places = {chat: place_marked(own.get(chat)) for chat in (from_chat, to_chat)}
    news = [place.just_before() for _id, place in news_first(places, roles).values()]
    place = min(news) if news else max(places.values())
    kept: UpTo = own.get(to_chat) or own[from_chat]
    marks.filter(chat__in=[from_chat, to_chat]).exclude(pk=kept.pk).delete()
    if place == BEGINNING:
        kept.delete()
        return
    # The chat may be the row's primary key, so an UPDATE moves it.
    marks.filter(pk=kept.pk).update(chat=to_chat, **place_fields(place))


def later_assignment(*chats: UUID) -> models.Assignment | None:
    """Return the assignment that counts when these chats become one."""
    both = models.Assignment.objects.filter(chat__in=chats).select_related("assignee")
    return both.order_by("-assigned_at").first()


def _assignment_move(from_chat: UUID, to_chat: UUID) -> None:
    latest = later_assignment(from_chat, to_chat)
    if latest is not None and latest.chat_id == from_chat:
        models.Assignment.objects.filter(chat=to_chat).delete()
        models.Assignment.objects.filter(chat=from_chat).update(chat=to_chat)
