"""Check which functions are enabled, and whether the caller may reach a chat."""

from __future__ import annotations

from typing import NoReturn

from django.conf import settings
from rest_framework.exceptions import NotFound, PermissionDenied

from memoryproject.foundation.rest_kit.callers import Caller
from memoryproject.foundation.rest_kit.errors import MemoryDisabled
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


def no_chat(whatsapp_chat: str) -> NoReturn:
    raise NotFound(f"There is no chat {whatsapp_chat[:100]}.")


def refuse_beyond_chats(caller: Caller, visibility: str) -> None:
    """Raise PermissionDenied if a bound token writes a memory that other chats recall."""
    if caller.is_bound and visibility != "chat":
        raise PermissionDenied(
            "The token is bound to chats: it writes memories of visibility chat only. Name one of "
            "its chats in whatsapp_chat."
        )
