"""Chats of the past for benchmarks: stored and asked as if it were then.

Import it after ``own_database``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from conversations import Conversation
from django.db import transaction
from django.utils import timezone

from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.chat_addresses import chat_for_group, chat_for_party, party_of
from sessions_app.conversations.message_store import NewMessage
from sessions_app.conversations.session_lifecycle import session_end, session_start
from sessions_app.embedding.message_vectors import sessions_embed
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.models import Chat

_real_now = timezone.now
_shift = threading.local()


@contextmanager
def clock_at(moment: datetime) -> Iterator[None]:
    """Within the block it is this time for the product's code in this thread, and goes on."""
    _shift.by = moment - _real_now()
    try:
        yield
    finally:
        _shift.by = timedelta(0)


def _shifted_now() -> datetime:
    return _real_now() + getattr(_shift, "by", timedelta(0))


# All of the product's code reads the clock there.
timezone.now = _shifted_now


def chat_open(whatsapp_chat: str, at: datetime) -> Chat:
    """The chat of a group or a person; it is created if it is new."""
    with transaction.atomic():
        if whatsapp_chat.endswith("@g.us"):
            return chat_for_group(provider="console", number_id="", group_id=whatsapp_chat)
        party = party_of(whatsapp_chat)
        return chat_for_party(provider="console", number_id="", party=party, at=at)


def conversation_store(
    conversation: Conversation, whatsapp_chat: str, embedder: Embedder
) -> tuple[Chat, list[UUID]]:
    """The conversation as a chat; the ids of its messages by the numbers of its turns."""
    begun = min((turn.said_at for turn in conversation.turns), default=timezone.now())
    chat = chat_open(whatsapp_chat, begun)
    memory = ChatMemoryService()
    ids: list[UUID] = []
    for number in sorted({turn.session for turn in conversation.turns}):
        turns = [turn for turn in conversation.turns if turn.session == number]
        session = session_start(chat=chat, now=turns[0].said_at)
        messages = [
            NewMessage(role=turn.role, content=turn.text, timestamp=turn.said_at) for turn in turns
        ]
        stored = memory.add_messages(conversation_id=session.pk, messages=messages)
        ids += [message.message_id for message in stored if message.message_id]
        sessions_embed(session_ids=[session.pk], embedder=embedder, progress=lambda _: None)
        session.refresh_from_db()
        session_end(session=session, at=turns[-1].said_at)
    return chat, ids
