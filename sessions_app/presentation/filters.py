"""Filter lists of conversations."""

from __future__ import annotations

from uuid import UUID

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import NotFound, ValidationError

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    MAX_WHATSAPP_CHAT,
    PATTERN,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.serializers import ChoicesFilter, MomentFilter, TruthFilter
from sessions_app.conversations.facade import SessionInChat, chat_at, session_read, stored_names
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus

# Find the object that a URL names, within the caller's reach.

WHATSAPP_CHAT_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_WHATSAPP_CHAT,
    "pattern": PATTERN,
}


def session_within(caller: Caller, session_id: UUID) -> ChatSession:
    """Return the session; raise NotFound if it is missing or out of reach."""
    rows = ChatSession.objects.select_related("chat").filter(caller.reach())
    session = rows.filter(pk=session_id).first()
    if session is None:
        raise NotFound(f"There is no session {session_id}.")
    return session


def session_in_chat_within(caller: Caller, session_id: UUID) -> SessionInChat:
    """Return the session with what decides its role; raise NotFound as ``session_within`` does."""
    found = session_read(session_id, chat_ids=caller.chat_ids)
    if found is None:
        raise NotFound(f"There is no session {session_id}.")
    return found


def chat_named(whatsapp_chat: str) -> Chat | None:
    """Return the chat of this id, None if there is none; raise ValidationError for no id."""
    chat = chat_at(whatsapp_chat)
    if chat is None:
        check_whatsapp_chat(whatsapp_chat)
    return chat


def check_whatsapp_chat(text: str) -> None:
    """Raise ValidationError for a text that is no id of a chat."""
    try:
        whatsapp_chat_normalise(text)
    except WhatsAppChatError as error:
        raise refuse(str(error), attr="whatsapp_chat") from error


def chat_within(caller: Caller, whatsapp_chat: str) -> Chat:
    """Return the chat; raise NotFound if it is missing or out of reach.

    Raises ValidationError for a text that is no id.
    """
    chat = chat_named(whatsapp_chat)
    if chat is None or not caller.may_see(chat.pk):
        raise NotFound(f"There is no chat {whatsapp_chat}.")
    return chat


def check_chat(caller: Caller, whatsapp_chat: str) -> None:
    """Raise NotFound if this chat may not be written to: a bound token creates no chats."""
    if caller.is_bound:
        chat_within(caller, whatsapp_chat)


@extend_schema_field(WHATSAPP_CHAT_SCHEMA)
class WhatsAppChatFilter(django_filters.CharFilter):  # type: ignore[misc]
    """The id of a chat, in any spelling."""


class SessionFilters(django_filters.FilterSet):  # type: ignore[misc]
    whatsapp_chat = WhatsAppChatFilter(
        method="in_chat", help_text="Of this chat, by any of its addresses."
    )
    status = ChoicesFilter(
        choices=SessionStatus.choices,
        help_text="active, expired or archived; several times: with one of them. Archived ones "
        "are listed only when asked for.",
    )
    since = MomentFilter(
        field_name="last_active",
        lookup_expr="gte",
        help_text="Those in which something was said since then, such as 2026-01-31T09:30:00Z.",
    )

    class Meta:
        model = ChatSession
        fields: list[str] = []

    def in_chat(self, rows: QuerySet[ChatSession], _: str, value: str) -> QuerySet[ChatSession]:
        return rows.filter(chat__in=chats_at(value))

    def filter_queryset(self, queryset: QuerySet[ChatSession]) -> QuerySet[ChatSession]:
        """Leave archived sessions out of default lists."""
        if not self.form.cleaned_data.get("status"):
            queryset = queryset.exclude(status=SessionStatus.ARCHIVED)
        found: QuerySet[ChatSession] = super().filter_queryset(queryset)
        return found


class MessageFilters(django_filters.FilterSet):  # type: ignore[misc]
    role = ChoicesFilter(
        choices=Role.choices, help_text="Such as user; several times: with one of them."
    )

    class Meta:
        model = Message
        fields: list[str] = []


class ChatFilters(django_filters.FilterSet):  # type: ignore[misc]
    whatsapp_chat = WhatsAppChatFilter(
        method="at", help_text="The one that is reached at this address."
    )
    is_group = TruthFilter(help_text="true: groups alone; false: people alone.")

    class Meta:
        model = Chat
        fields: list[str] = []

    def at(self, rows: QuerySet[Chat], _: str, value: str) -> QuerySet[Chat]:
        return rows.filter(pk__in=chats_at(value))


def chats_at(whatsapp_chat: str) -> QuerySet[Chat]:
    """Return the chat of this id, in any spelling: its name, or a current address of its person.

    Raises ValidationError for a text that is no id, unless an older chat has it as its name.
    """
    names = stored_names(whatsapp_chat)
    there = Q(addresses__address__in=names, addresses__left_at__isnull=True)
    found = Chat.objects.filter(Q(whatsapp_chat__in=names) | there)
    try:
        check_whatsapp_chat(whatsapp_chat)
    except ValidationError:
        if not found.exists():
            raise
    return found
