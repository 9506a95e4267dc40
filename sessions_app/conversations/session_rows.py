"""Read and lock a session with its chat and the addresses that decide its role, in one query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet

from sessions_app.models import ChatAddress, ChatSession


@dataclass(frozen=True)
class SessionInChat:
    """A session with its chat; ``addresses``: the chat's, at present."""

    session: ChatSession
    addresses: Sequence[str]


def session_read(
    session_id: UUID, *, chat_ids: Collection[UUID] | None = None
) -> SessionInChat | None:
    """Return the session; None if there is none in these chats (None: in any chat)."""
    return _first(_sessions(session_id, chat_ids))


def session_lock(
    session_id: UUID, *, chat_ids: Collection[UUID] | None = None
) -> SessionInChat | None:
    """Return the same as ``session_read``; the session is locked until the transaction ends."""
    locked = _sessions(session_id, chat_ids).select_for_update(no_key=True, of=("self",))
    # Where chats were merged while this waited for the lock, the row no longer fits the chat that
    # was joined to it: the second read finds both.
    return _first(locked) or _first(locked)


def _sessions(session_id: UUID, chat_ids: Collection[UUID] | None) -> QuerySet[Any]:
    current = ChatAddress.objects.filter(chat=OuterRef("chat"), left_at__isnull=True)
    sessions = ChatSession.objects.filter(pk=session_id).select_related("chat")
    if chat_ids is not None:
        sessions = sessions.filter(chat__in=chat_ids)
    return sessions.annotate(current_addresses=ArraySubquery(current.values("address")))


def _first(sessions: QuerySet[Any]) -> SessionInChat | None:
    session = sessions.first()
    return None if session is None else SessionInChat(session, session.current_addresses)
