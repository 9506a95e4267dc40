"""Merge notes and markers when two chats turn out to be one person."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sessions_app.conversations.facade import BEGINNING
from sessions_app.inbox.read_markers import (
    FROM_PEOPLE,
    SAID,
    news_first,
    place_fields,
    place_marked,
)
from sessions_app.models import (
    Assignment,
    Bookmark,
    ChatLabel,
    Note,
    ReadMark,
    ReviewedMark,
    Snooze,
)
from sessions_app.models.review import UpTo


def review_move(*, from_chat: UUID, to_chat: UUID) -> None:
    """Move notes, bookmarks and labels to the remaining chat.

    Of two assignees, the later one stays. A conversation that was put off comes back. Call it
    before the messages are moved, so that nothing unread in either chat is skipped afterwards.
    """
    readers = ReadMark.objects.filter(chat__in=[from_chat, to_chat]).values_list("user", flat=True)
    for user_id in set(readers):
        _join(ReadMark.objects.filter(user=user_id), from_chat, to_chat, FROM_PEOPLE)
    _join(ReviewedMark.objects.all(), from_chat, to_chat, SAID)
    Note.objects.filter(chat=from_chat).update(chat=to_chat)
    there = Bookmark.objects.filter(chat=to_chat, message=None).values("user")
    Bookmark.objects.filter(chat=from_chat, message=None, user__in=there).delete()
    Bookmark.objects.filter(chat=from_chat).update(chat=to_chat)
    labels = ChatLabel.objects.filter(chat=to_chat).values("label")
    ChatLabel.objects.filter(chat=from_chat).exclude(label__in=labels).update(chat=to_chat)
    _assignment_move(from_chat, to_chat)
    Snooze.objects.filter(chat__in=[from_chat, to_chat]).delete()


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


def later_assignment(*chats: UUID) -> Assignment | None:
    """Return the assignment that counts when these chats become one."""
    both = Assignment.objects.filter(chat__in=chats).select_related("assignee")
    return both.order_by("-assigned_at").first()


def _assignment_move(from_chat: UUID, to_chat: UUID) -> None:
    latest = later_assignment(from_chat, to_chat)
    if latest is not None and latest.chat_id == from_chat:
        Assignment.objects.filter(chat=to_chat).delete()
        Assignment.objects.filter(chat=from_chat).update(chat=to_chat)
