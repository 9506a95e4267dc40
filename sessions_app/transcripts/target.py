"""Find the conversation that batches belong to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import Error, connection

from sessions_app.conversations.facade import ConversationNotFoundError, chat_at
from sessions_app.legacy_import.facade import chat_for_address, chat_of_session
from sessions_app.models import Chat, ChatSession
from sessions_app.transcript_files.facade import BusyError
from sessions_app.transcripts.conversation_queries import Conversation

# The chat of batches for which no chat was given.
DEFAULT_CHAT = "transcripts@c.us"


@dataclass(frozen=True)
class Target:
    """A session by its id, or else a chat by its address, which may be new."""

    whatsapp_chat: str = DEFAULT_CHAT
    session_id: UUID | None = None

    def find(self) -> Conversation | None:
        """Return the stored conversation; None if the chat is new.

        Raises ConversationNotFoundError for an unknown session.
        """
        if self.session_id is None:
            chat = chat_at(self.whatsapp_chat)
            return None if chat is None else Conversation(chat)
        session = ChatSession.objects.select_related("chat").filter(pk=self.session_id).first()
        if session is None:
            raise ConversationNotFoundError(self.session_id)
        return Conversation(session.chat, session)

    def lock(self, now: datetime) -> Conversation:
        """Return the conversation with the chat's row locked; create a new chat.

        Call it in a transaction.
        """
        if self.session_id is not None:
            owner = chat_of_session(self.session_id)
            if owner is None:
                raise ConversationNotFoundError(self.session_id)
            sessions = ChatSession.objects.select_for_update(no_key=True)
            return Conversation(owner, sessions.get(pk=self.session_id))
        found = chat_for_address(address=self.whatsapp_chat, at=now)
        return Conversation(Chat.objects.select_for_update(no_key=True).get(pk=found.pk))


@contextmanager
def alone_in(target: Target) -> Iterator[None]:
    """Hold the lock on saves into the target's chat. Raises BusyError.

    The database releases the lock when the process dies.
    """
    found = target.find()
    name = str(found.chat.pk) if found else target.whatsapp_chat
    digest = hashlib.sha256(f"transcripts\0{name}".encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        if not cursor.fetchone()[0]:
            raise BusyError(
                "Another chat_memory saves into the same chat: run it again when that is done."
            )
    try:
        yield
    finally:
        with suppress(Error), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
