"""Check which functions are enabled, and whether the caller may reach a chat."""

from __future__ import annotations

from typing import NoReturn

from django.conf import settings
from django.db.models import Q
from rest_framework.exceptions import NotFound, PermissionDenied

from memories_app.models import Visibility
from memoryproject.foundation.rest_kit.authentication import Caller
from memoryproject.foundation.rest_kit.errors import MemoryDisabled, refuse
from sessions_app.conversations.facade import chat_at
from sessions_app.models import Chat

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
