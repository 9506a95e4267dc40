"""Find the object that a URL names, within the caller's reach.

An object out of reach is answered like a missing one, so that nobody learns of it.
"""

from __future__ import annotations

from uuid import UUID

from rest_framework.exceptions import NotFound

from memoryproject.foundation.integrations.whatsapp.whatsapp_chats import (
    MAX_WHATSAPP_CHAT,
    PATTERN,
    WhatsAppChatError,
    whatsapp_chat_normalise,
)
from memoryproject.foundation.rest_kit.callers import Caller
from memoryproject.foundation.rest_kit.errors import refuse
from sessions_app.conversations.facade import SessionInChat, chat_at, session_read
from sessions_app.models import Chat, ChatSession

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
