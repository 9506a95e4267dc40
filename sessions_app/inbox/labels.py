"""Sorts conversations: bookmarks, labels, and who looks after which."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.events import Actor
from sessions_app.inbox.chat_locks import chats_lock, chats_record
from sessions_app.inbox.errors import ReviewError
from sessions_app.models import Assignment, Bookmark, ChatLabel, Label, Message


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


@dataclass(frozen=True)
class Assigned:
    """How many chats got another assignee, and by username who has those that were left alone."""

    changed: int
    kept_by: Sequence[str] = ()


def chats_assign(
    *,
    chat_ids: Collection[UUID],
    assignee: User | None,
    actor: Actor,
    was: Mapping[UUID, str] = MappingProxyType({}),
) -> Assigned:
    """Let one of the staff look after chats, or nobody. ``was``: who looked after a chat when
    that was decided, by the user's key, "" for nobody; where somebody else does by now, the chat
    is left to them. Of chats that aren't in it that doesn't matter. Raises ReviewError for an
    assignee who isn't of the staff (any more)."""
    if assignee is not None and not (assignee.is_active and assignee.is_staff):
        raise ReviewError(_("Conversations can only be assigned to staff who can log in."))
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        assigned = Assignment.objects.filter(chat__in=chats).select_related("assignee")
        # Two who take the same conversation shouldn't both believe that they have it.
        taken = {
            each.chat_id: each.assignee.get_username()
            for each in assigned
            if each.assignee != assignee
            and was.get(each.chat_id, str(each.assignee.pk)) != str(each.assignee.pk)
        }
        if assignee is None:
            given_up = assigned.exclude(chat__in=taken)
            changed = sorted(given_up.values_list("chat", flat=True))
            given_up.delete()
        else:
            same = assigned.filter(assignee=assignee).values_list("chat", flat=True)
            changed = sorted({*chats} - {*same} - {*taken})
            now = timezone.now()
            Assignment.objects.bulk_create(
                [Assignment(chat_id=key, assignee=assignee, assigned_at=now) for key in changed],
                update_conflicts=True,
                unique_fields=["chat"],
                update_fields=["assignee", "assigned_at"],
            )
        details = {"assignee": assignee.get_username() if assignee else ""}
        chats_record("chat.assign", changed, actor, details)
    return Assigned(len(changed), sorted(taken.values()))
