"""What tests of reviews share: the inbox as one of the staff sees it, and what they do."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.utils.timezone import localdate

from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.conversations.timeline import Place
from sessions_app.inbox.chat_list import Row, Wanted, chats_wanted, inbox_rows
from sessions_app.inbox.move_markers import chat_look
from sessions_app.models import Message
from tests.events import revocation
from tests.world import CLIENT, World

STAFF = Actor("staff", "dana")


def inbox(user: User, **wanted: Any) -> list[Row]:
    chats = chats_wanted(Wanted(**wanted), user, memory_default=True, today=localdate())
    return inbox_rows(list(chats), user)


def names(user: User, **wanted: Any) -> list[str]:
    return [row.chat.whatsapp_chat for row in inbox(user, **wanted)]


def row_of(user: User, whatsapp_chat: str = CLIENT) -> Row:
    (row,) = [row for row in inbox(user) if row.chat.whatsapp_chat == whatsapp_chat]
    return row


def look(user: User, world: World, whatsapp_chat: str = CLIENT) -> None:
    """See everything that there is."""
    last = world.messages(whatsapp_chat)[-1]
    place = Place(last.session.created_at, last.session_id, last.order_num)
    chat_look(user=user, chat_id=last.chat_id, place=place)


def actions() -> list[str]:
    events = AuditEvent.objects.filter(actor="dana").order_by("id")
    return list(events.values_list("action", flat=True))


def revoke(world: World, message: Message) -> None:
    world.receive(revocation(message.provider_message_id))
