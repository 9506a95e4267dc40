"""Actions of the café's staff on conversations: label, assign, note, bookmark, read, review."""

from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.staff_site.demo.story_texts import PEOPLE, StaffAction
from sessions_app.inbox import move_markers, notes
from sessions_app.inbox.labels import bookmark_set, chats_assign, chats_label
from sessions_app.models import Chat, Label, Message


def perform(action: StaffAction) -> None:
    """Perform an action at the current time."""
    chats = Chat.objects.all()
    if action.chats:
        chats = chats.filter(whatsapp_chat__in=[PEOPLE[key].whatsapp_chat for key in action.chats])
    chat_ids = list(chats.values_list("pk", flat=True))
    message_id = None
    if action.message:
        messages = Message.objects.filter(chat__in=chat_ids, content=action.message)
        message_id = messages.latest("timestamp").pk
    users = User.objects.filter(username=action.by)
    if not action.by:
        # Bookmarks and read markers are personal. Users who existed before the demo get them too,
        # because they view it.
        users = User.objects.filter(is_staff=True, is_active=True).order_by("pk")
    for user in users:
        _perform_as(user, action, chat_ids, message_id)


def _perform_as(
    user: User, action: StaffAction, chat_ids: list[UUID], message_id: UUID | None
) -> None:
    actor = Actor("staff", user.get_username())
    if action.do == "label":
        chats_label(chat_ids=chat_ids, label=Label.objects.get(name=action.label), actor=actor)
    elif action.do == "assign":
        chats_assign(chat_ids=chat_ids, assignee=user, actor=actor)
    elif action.do == "review":
        move_markers.chats_review(user=user, chat_ids=chat_ids, actor=actor)
    elif action.do == "read":
        move_markers.chats_mark_read(user=user, chat_ids=chat_ids, actor=actor)
    for chat_id in chat_ids:
        about: dict[str, Any] = {"user": user, "actor": actor, "message_id": message_id}
        if action.do == "note":
            notes.note_write(chat_id=chat_id, text=action.text, **about)
        elif action.do == "bookmark":
            bookmark_set(chat_id=chat_id, wanted=True, **about)
