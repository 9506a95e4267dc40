"""Find the row of a message by the id under which an event names it."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from sessions_app.models.messages import has_token_of

Row = TypeVar("Row", bound=Model)
FIELD = "provider_message_id"


def row_of(
    rows: QuerySet[Row], message_id: str, *, chat_id: UUID | None, chat: str = "chat"
) -> Row | None:
    """Return the row with this id, otherwise the one in the chat whose id has the same token.

    ``chat``: the path from a row to its chat.
    """
    found = rows.filter(**{FIELD: message_id}).first()
    return found or row_by_token(rows, message_id, chat_id=chat_id, chat=chat)


def row_by_token(
    rows: QuerySet[Row], message_id: str, *, chat_id: UUID | None, chat: str = "chat"
) -> Row | None:
    """Return the first row in the chat whose id has the same token."""
    if chat_id is None or not message_id.startswith("wamid."):
        return None
    return rows.filter(has_token_of(FIELD, message_id), **{chat: chat_id}).order_by("pk").first()
