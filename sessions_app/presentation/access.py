"""What a caller of the API may reach, which functions are on, and the filters of its lists."""

from typing import Any, NoReturn
from uuid import UUID

import django_filters
from django.conf import settings
from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import NotFound, PermissionDenied

from memories_app.models import Visibility
from memoryproject.foundation.integrations.whatsapp import whatsapp_chats
from memoryproject.foundation.rest_kit import serializers, where
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.errors import MemoryDisabled, refuse
from sessions_app.conversations.chat_queries import chat_at
from sessions_app.conversations.session_lifecycle import SessionInChat, session_read
from sessions_app.models import Chat, ChatSession
from sessions_app.models.chats import Speaker
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus

LONGTERM_OFF = (
    "Long-term memory is switched off: nothing is remembered or recalled. Set "
    "LONGTERM_ENABLED=true (longterm.enabled in config.json)."
)


def require_memory(chat: Chat | None = None) -> None:
    """Raise MemoryDisabled if memory is off, globally or in this chat."""
    own = None if chat is None else chat.memory_enabled
    if not (settings.ENABLE_MEMORY_SYSTEM if own is None else own):
        raise MemoryDisabled


def require_longterm() -> None:
    """Raise MemoryDisabled if long-term memory is off."""
    if not settings.LONGTERM_ENABLED:
        raise MemoryDisabled(LONGTERM_OFF)


def chat_in_reach(caller: Caller, whatsapp_chat: str) -> Chat | None:
    """Return the chat with this name; None if it is new.

    Raises NotFound for a chat out of reach of a bound token. That includes new chats, so that
    nobody learns which ones exist.
    """
    chat = chat_at(whatsapp_chat)
    if caller.is_bound and (chat is None or not caller.may_see(chat.pk)):
        no_chat(whatsapp_chat)
    return chat


def speaker_of(caller: Caller) -> Speaker:
    """Return the caller as who writes in a person's place."""
    return Speaker(caller.actor.kind, caller.actor.name, caller.is_bound)


def names_of_bound(caller: Caller) -> list[str]:
    """Return the names of the chats that a token is bound to; none for other callers."""
    if caller.chat_ids is None:
        return []
    chats = Chat.objects.filter(pk__in=caller.chat_ids).order_by("whatsapp_chat")
    return list(chats.values_list("whatsapp_chat", flat=True))


def own_chat(caller: Caller) -> str | None:
    """Return the chat of a token that is bound to exactly one: it needn't name it."""
    names = names_of_bound(caller)
    return names[0] if len(names) == 1 else None


def chat_or_own(caller: Caller, whatsapp_chat: str | None) -> str:
    """Return the named chat, else a bound token's only one; raise ValidationError for neither."""
    found = whatsapp_chat or own_chat(caller)
    if found:
        return found
    names = names_of_bound(caller)
    bound = f" The token is bound to {', '.join(names)}: name one." if names else ""
    raise refuse(f"This field is required.{bound}", code="required", attr="whatsapp_chat")


def no_chat(whatsapp_chat: str) -> NoReturn:
    raise NotFound(f"There is no chat {whatsapp_chat[:100]}.")


def memories_in_reach(caller: Caller) -> Q:
    """Return the condition on memories, or on documents, that the caller may access.

    A bound token acts for the people who write in its chats. What only the owner sees is beyond
    its reach, also in the owner's own chat.
    """
    if not caller.is_bound:
        return Q()
    return caller.reach() & ~Q(visibility=Visibility.OWNER)


def refuse_beyond_chats(caller: Caller, visibility: str) -> None:
    """Raise PermissionDenied if a bound token writes a memory that other chats recall."""
    if caller.is_bound and visibility != "chat":
        raise PermissionDenied(
            "The token is bound to chats: it writes memories of visibility chat only. Name one of "
            f"its chats in whatsapp_chat: {', '.join(names_of_bound(caller))}."
        )


# Filter lists of conversations.


WHATSAPP_CHAT_SCHEMA = {
    "type": "string",
    "minLength": 1,
    "maxLength": whatsapp_chats.MAX_WHATSAPP_CHAT,
    "pattern": whatsapp_chats.PATTERN,
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
        whatsapp_chats.whatsapp_chat_normalise(text)
    except whatsapp_chats.WhatsAppChatError as error:
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
    """The id of a chat, in any spelling. ``field_name``: the rows' id of their chat."""

    def filter(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return rows
        return rows.filter(**{f"{self.field_name}__in": chats_at(value).values("pk")})


class ChatKey(serializers.Text):
    """A chat by any of its addresses, as its id, or as one that no chat has."""

    def to_internal_value(self, data: Any) -> Any:
        chat = chat_named(super().to_internal_value(data))
        return UUID(int=0) if chat is None else chat.pk


CHAT = where.Kind(ChatKey(), where.SAME)
SESSION_FIELDS: where.Fields = {
    "session_id": where.Column("session_id", where.ID),
    "whatsapp_chat": where.Column("chat_id", CHAT),
    **where.columns(where.TEXT, "status"),
    **where.columns(where.MOMENT, "created_at", "last_active", "expired_at"),
    **where.columns(where.WHOLE, "message_counter", "total_tokens"),
    "client_name": where.Column("chat__client_name", where.TEXT),
}
CHAT_FIELDS: where.Fields = {
    "object_id": where.Column("id", where.ID),
    "whatsapp_chat": where.Column("id", CHAT),
    **where.columns(where.TEXT, "client_name", "client_phone", "language", "fixed_language"),
    **where.columns(where.TRUTH, "is_group", "memory_enabled"),
    "created_at": where.Column("created_at", where.MOMENT),
}
MESSAGE_FIELDS: where.Fields = {
    "message_id": where.Column("message_id", where.ID),
    "session_id": where.Column("session_id", where.ID),
    "whatsapp_chat": where.Column("chat_id", CHAT),
    "order_num": where.Column("order_num", where.WHOLE),
    **where.columns(where.TEXT, "role", "kind", "content", "sender", "recipient"),
    **where.columns(where.MOMENT, "timestamp", "received_at"),
    "tokens": where.Column("tokens", where.WHOLE),
    "was_received": where.Column("was_received", where.TRUTH),
    "metadata": where.Json("metadata"),
}


class SessionFilters(django_filters.FilterSet):  # type: ignore[misc]
    whatsapp_chat = WhatsAppChatFilter(field_name="chat_id")
    status = serializers.ChoicesFilter(choices=SessionStatus.choices)
    since = serializers.MomentFilter(field_name="last_active", lookup_expr="gte")

    def filter_queryset(self, queryset: QuerySet[ChatSession]) -> QuerySet[ChatSession]:
        """Leave archived sessions out of default lists."""
        if not self.form.cleaned_data.get("status"):
            queryset = queryset.exclude(status=SessionStatus.ARCHIVED)
        found: QuerySet[ChatSession] = super().filter_queryset(queryset)
        return found


class MessageFilters(django_filters.FilterSet):  # type: ignore[misc]
    role = serializers.ChoicesFilter(choices=Role.choices)


class ChatFilters(django_filters.FilterSet):  # type: ignore[misc]
    whatsapp_chat = WhatsAppChatFilter(field_name="pk")
    is_group = serializers.TruthFilter()


def chats_at(whatsapp_chat: str) -> QuerySet[Chat]:
    """Return the chat of this id, in any spelling: its name, or a current address of its person.

    Raises ValidationError for a text that is no id, unless an older chat has it as its name.
    """
    chat = chat_named(whatsapp_chat)
    return Chat.objects.filter(pk=chat.pk) if chat else Chat.objects.none()
