"""Read memories with the chats that they came from, which their own app doesn't know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery

from memories_app.models import Memory, Visibility
from memories_app.search.facade import memories_for_staff
from sessions_app.models import Chat


def memories_named(within: Q | None = None) -> QuerySet[Any]:
    """Return all memories, each with ``whatsapp_chat``.

    ``within``: only of chats for which this holds of ``chat_id``; the names of other chats are
    never shown.
    """
    chats = Chat.objects.filter(pk=OuterRef("chat_id"))
    named: QuerySet[Memory] = memories_for_staff().defer("terms", "likeness")
    if within is not None:
        named = named.filter(within)
    return named.annotate(whatsapp_chat=Subquery(chats.values("whatsapp_chat")[:1]))


class ShownMemory(NamedTuple):
    """What a recall shows of a memory beside its text."""

    chat_id: UUID | None
    type: str
    category: str
    tags: list[str]
    visibility: str
    metadata: dict[str, Any]
    whatsapp_chat: str | None
    client_name: str | None
    source: str
    said_at: datetime
    valid_from: datetime | None
    valid_until: datetime | None


def memories_shown(memory_ids: Sequence[UUID]) -> dict[UUID, ShownMemory]:
    """Return by id what recall shows of these memories beside their texts."""
    if not memory_ids:
        return {}
    chat = Chat.objects.filter(pk=OuterRef("chat_id"))
    memories = Memory.objects.filter(pk__in=memory_ids).annotate(
        whatsapp_chat=Subquery(chat.values("whatsapp_chat")),
        client_name=Subquery(chat.values("client_name")),
    )
    rows = memories.values_list("pk", *ShownMemory._fields)
    return {key: ShownMemory(*columns) for key, *columns in rows}


def memories_for_bound(reach: Q) -> Q:
    """Return the memories for a viewer bound to some chats: those of the chats, and public ones.

    ``reach``: the chats of the viewer.
    """
    return reach | Q(visibility=Visibility.PUBLIC)
