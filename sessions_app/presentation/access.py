"""What is switched off, and who may reach a chat that a body names."""

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
    """Raises MemoryDisabled where nothing may be stored: at all, or in this chat."""
    own = None if chat is None else chat.memory_enabled
    if not (settings.ENABLE_MEMORY_SYSTEM if own is None else own):
        raise MemoryDisabled


def require_longterm() -> None:
    """Raises MemoryDisabled where long-term memory alone is off."""
    if not settings.LONGTERM_ENABLED:
        raise MemoryDisabled(LONGTERM_OFF)


def chat_in_reach(caller: Caller, whatsapp_chat: str) -> Chat | None:
    """The chat of this name; None where it is new. Raises NotFound for what a bound token
    doesn't reach: also for a new one, so that nobody learns which there are."""
    chat = chat_at(whatsapp_chat)
    if caller.is_bound and (chat is None or not caller.may_see(chat.pk)):
        no_chat(whatsapp_chat)
    return chat


def no_chat(whatsapp_chat: str) -> NoReturn:
    raise NotFound(f"There is no chat {whatsapp_chat[:100]}.")


def refuse_beyond_chats(caller: Caller, visibility: str) -> None:
    """Raises PermissionDenied where a bound token writes what other chats recall."""
    if caller.is_bound and visibility != "chat":
        raise PermissionDenied(
            "The token is bound to chats: it writes memories of visibility chat only. Name one of "
            "its chats in whatsapp_chat."
        )
