"""Filter lists of conversations."""

from __future__ import annotations

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError

from memoryproject.foundation.rest_kit.filters import ChoicesFilter, MomentFilter, TruthFilter
from sessions_app.conversations.facade import stored_names
from sessions_app.models import Chat, ChatSession, Message
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation.lookup import WHATSAPP_CHAT_SCHEMA, check_whatsapp_chat


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
