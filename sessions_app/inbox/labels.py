"""Sort conversations by bookmarks, labels and assignees."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.staff_notices import Kind, notify
from sessions_app.conversations.session_lifecycle import rules_look
from sessions_app.inbox.move_markers import ReviewError, chats_lock, chats_record
from sessions_app.models import Assignment, Bookmark, ChatLabel, Label, Message


def bookmark_set(
    *, user: User, chat_id: UUID, actor: Actor, wanted: bool, message_id: UUID | None = None
) -> bool:
    """Set or remove one's own bookmark on a chat or a message; return whether it changed.

    Setting it twice has no further effect. Raises ReviewError if the message doesn't exist.
    """
    with transaction.atomic():
        if not chats_lock([chat_id]):
            return False
        messages = Message.objects.filter(chat=chat_id, pk=message_id)
        if message_id is not None and not messages.exists():
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
    """Add a label to chats; return how many didn't have it."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        having = ChatLabel.objects.filter(label=label, chat__in=chats)
        fresh = sorted({*chats} - {*having.values_list("chat", flat=True)})
        ChatLabel.objects.bulk_create(ChatLabel(chat_id=key, label=label) for key in fresh)
        chats_record("chat.label", fresh, actor, {"label": label.pk})
        if len(fresh) == 1:
            # Where many get it, the sweep looks.
            rules_look(fresh[0])
    return len(fresh)


def chats_unlabel(*, chat_ids: Collection[UUID], label: Label, actor: Actor) -> int:
    """Remove a label from chats; return how many had it."""
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        having = ChatLabel.objects.filter(label=label, chat__in=chats)
        gone = sorted(having.values_list("chat", flat=True))
        having.delete()
        chats_record("chat.unlabel", gone, actor, {"label": label.pk})
    return len(gone)


@dataclass(frozen=True)
class Assigned:
    """The number of reassigned chats, and the assignees of the unchanged ones by username."""

    changed: int
    kept_by: Sequence[str] = ()


def chats_assign(
    *,
    chat_ids: Collection[UUID],
    assignee: User | None,
    actor: Actor,
    was: Mapping[UUID, str] = MappingProxyType({}),
) -> Assigned:
    """Assign chats to a staff member, or to nobody.

    ``was`` maps a chat to the assignee that was shown when the user decided, by primary key, "" for
    nobody. If another person is assigned by now, the chat keeps them. Chats that aren't in ``was``
    are always assigned. Raises ReviewError for an assignee who isn't staff (any more).
    """
    if assignee is not None and not (assignee.is_active and assignee.is_staff):
        raise ReviewError(_("Conversations can only be assigned to staff who can log in."))
    now = timezone.now()
    with transaction.atomic():
        chats = chats_lock(chat_ids)
        assigned = Assignment.objects.filter(chat__in=chats).select_related("assignee")
        # If two people take the same conversation, only one of them may believe that they have it.
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
            Assignment.objects.bulk_create(
                [Assignment(chat_id=key, assignee=assignee, assigned_at=now) for key in changed],
                update_conflicts=True,
                unique_fields=["chat"],
                update_fields=["assignee", "assigned_at"],
            )
        details = {"assignee": assignee.get_username() if assignee else ""}
        chats_record("chat.assign", changed, actor, details)
        if assignee is not None and assignee.get_username() != actor.name:
            # Who takes a conversation knows it.
            given = [(f"{key}@{now.timestamp()}", key) for key in changed]
            notify(Kind.ASSIGNED, given, user_id=assignee.pk)
    return Assigned(len(changed), sorted(taken.values()))
