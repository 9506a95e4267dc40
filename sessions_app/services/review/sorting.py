"""Sorts conversations: bookmarks, labels, and who looks after which."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.audit.events import Actor
from sessions_app.models import Assignment, Bookmark, ChatLabel, Label, Message
from sessions_app.services.review.chats import chats_lock, chats_record
from sessions_app.services.review.errors import ReviewError


def bookmark_set(
    *, user: User, chat_id: UUID, actor: Actor, wanted: bool, message_id: UUID | None = None
) -> bool:
    """Set or take away one's own bookmark on a chat or on one of its messages; twice is once.
    Returns whether anything changed. Raises ReviewError where there is no such message."""
    with transaction.atomic():
        if not chats_lock([chat_id]):
            return False
        said = Message.objects.filter(chat=chat_id, pk=message_id)
        if message_id is not None and not said.exists():
            raise ReviewError(_("The message isn't there any more."))
        own = Bookmark.objects.filter(user=user, chat=chat_id, message=message_id)
        if own.exists() == wanted:
            return False
        if wanted:
            Bookmark.objects.create(user=user, chat_id=chat_id, message_id=message_id)
        else:
            own.delete()
        action = "chat.bookmark" if wanted else "chat.unbookmark"
        chats_record(action, [chat_id], actor, {"message": message_id is not None})
    return True


def chats_label(*, chat_ids: Collection[UUID], label: Label, actor: Actor) -> int:
    """Put a label on chats; returns how many didn't have it."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        having = ChatLabel.objects.filter(label=label, chat__in=chats)
        fresh = sorted({*chats} - {*having.values_list("chat", flat=True)})
        ChatLabel.objects.bulk_create(ChatLabel(chat_id=key, label=label) for key in fresh)
        chats_record("chat.label", fresh, actor, {"label": label.pk})
    return len(fresh)


def chats_unlabel(*, chat_ids: Collection[UUID], label: Label, actor: Actor) -> int:
    """Take a label off chats; returns how many had it."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        having = ChatLabel.objects.filter(label=label, chat__in=chats)
        gone = sorted(having.values_list("chat", flat=True))
        having.delete()
        chats_record("chat.unlabel", gone, actor, {"label": label.pk})
    return len(gone)


def chats_assign(
    *, chat_ids: Collection[UUID], assignee: User | None, actor: Actor, was: str | None = None
) -> int:
    """Let one of the staff look after chats, or nobody; returns how many that changes. ``was``:
    who looked after them when that was decided, by the user's key, "" for nobody; None where
    that doesn't matter. Raises ReviewError for who isn't of the staff (any more), and where
    somebody else looks after one of them by now."""
    if assignee is not None and not (assignee.is_active and assignee.is_staff):
        raise ReviewError(_("Conversations can only be assigned to staff who can log in."))
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        assigned = Assignment.objects.filter(chat__in=chats)
        if was is not None:
            _refuse_if_taken(assigned, was, assignee)
        if assignee is None:
            changed = sorted(assigned.values_list("chat", flat=True))
            assigned.delete()
        else:
            same = assigned.filter(assignee=assignee).values_list("chat", flat=True)
            changed = sorted({*chats} - {*same})
            now = timezone.now()
            Assignment.objects.bulk_create(
                [Assignment(chat_id=key, assignee=assignee, assigned_at=now) for key in changed],
                update_conflicts=True,
                unique_fields=["chat"],
                update_fields=["assignee", "assigned_at"],
            )
        details = {"assignee": assignee.get_username() if assignee else ""}
        chats_record("chat.assign", changed, actor, details)
    return len(changed)


def _refuse_if_taken(assigned: QuerySet[Assignment], was: str, assignee: User | None) -> None:
    """Two who take the same conversation shouldn't both believe that they have it."""
    for each in assigned.select_related("assignee"):
        if each.assignee != assignee and str(each.assignee.pk) != was:
            text = _("Meanwhile %(name)s looks after it. Assign it again if you mean it.")
            raise ReviewError(text % {"name": each.assignee.get_username()})
