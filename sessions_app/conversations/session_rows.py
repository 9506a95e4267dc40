"""Read and lock a session with its chat and the addresses that decide its role, in one statement.

Programs do so with every message. So it is written in SQL: Django would take longer to compile it
than PostgreSQL to run it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model

from memoryproject.foundation.compiled_sql import read_prepared
from sessions_app.models import Chat, ChatAddress, ChatSession

Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True)
class SessionInChat:
    """A session with its chat; ``addresses``: the chat's, at present."""

    session: ChatSession
    addresses: Sequence[str]


def _columns(model: type[Model], alias: str) -> str:
    return ", ".join(f"{alias}.{field.column}" for field in model._meta.concrete_fields)


_READ = f"""
SELECT {_columns(ChatSession, "session")}, {_columns(Chat, "chat")},
    ARRAY(SELECT address FROM {ChatAddress._meta.db_table} AS known
          WHERE known.chat_id = session.chat_id AND known.left_at IS NULL)
FROM {ChatSession._meta.db_table} AS session JOIN {Chat._meta.db_table} AS chat
    ON chat.id = session.chat_id
WHERE session.session_id = %(session_id)s
    AND (%(chat_ids)s::uuid[] IS NULL OR session.chat_id = ANY(%(chat_ids)s::uuid[]))
"""  # noqa: S608 constants only
_LOCK = f"{_READ} FOR NO KEY UPDATE OF session"


def session_read(
    session_id: UUID, *, chat_ids: Collection[UUID] | None = None
) -> SessionInChat | None:
    """Return the session; None if there is none in these chats (None: in any chat)."""
    return _fetch(_READ, session_id, chat_ids)


def session_lock(
    session_id: UUID, *, chat_ids: Collection[UUID] | None = None
) -> SessionInChat | None:
    """Return the same as ``session_read``; the session is locked until the transaction ends."""
    # Where chats were merged while this waited for the lock, the row no longer fits the chat that
    # was joined to it: the second read finds both.
    found = _fetch(_LOCK, session_id, chat_ids)
    return _fetch(_LOCK, session_id, chat_ids) if found is None else found


def _fetch(
    statement: str, session_id: UUID, chat_ids: Collection[UUID] | None
) -> SessionInChat | None:
    wanted = None if chat_ids is None else list(chat_ids)
    rows = read_prepared(statement, {"session_id": session_id, "chat_ids": wanted})
    if not rows:
        return None
    *columns, addresses = rows[0]
    own = len(ChatSession._meta.concrete_fields)
    session = _from_row(ChatSession, columns[:own])
    session.chat = _from_row(Chat, columns[own:])
    return SessionInChat(session, addresses)


def _from_row(model: type[Row], values: Sequence[Any]) -> Row:
    names = [field.attname for field in model._meta.concrete_fields]
    return model.from_db(connection.alias, names, values)
