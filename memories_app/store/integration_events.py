"""Events about memories for integrators: ids and fixed words, never the content."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memories_app.models import Memory
from memoryproject.foundation.outgoing_webhooks.kinds import (
    MEMORY_CHANGED,
    MEMORY_CREATED,
    MEMORY_FORGOTTEN,
)
from memoryproject.foundation.outgoing_webhooks.webhook_events import HookEvent, hooks_raise

_TYPES = {
    "memory.remember": MEMORY_CREATED,
    "memory.import": MEMORY_CREATED,
    "memory.forget": MEMORY_FORGOTTEN,
    "memory.reject": MEMORY_FORGOTTEN,
}
# By action: the fields that may have changed, with their names in the REST API.
_FIELDS: dict[str, tuple[str, ...]] = {
    "memory.visibility": ("visibility",),
    "memory.pin": ("pinned",),
    "memory.unpin": ("pinned",),
    "memory.expiry": ("expires_at",),
    "memory.supersede": ("status",),
    "memory.approve": ("status",),
    "memory.reinstate": ("status",),
    "memory.merge": ("content", "pinned", "tags"),
}


def memory_event(action: str, memory: Memory, details: Mapping[str, Any]) -> HookEvent | None:
    """Return the event for an audited ``action``; None if integrators get none.

    A repeated mention of a known fact is no change.
    """
    if _TYPES.get(action) == MEMORY_FORGOTTEN:
        # The erasure names its receipt; a memory that is removed otherwise has none.
        return _event(MEMORY_FORGOTTEN, memory, receipt_id=None)
    if action in _TYPES:
        return _event(_TYPES[action], memory)
    fields = details.get("fields") if action == "memory.update" else _FIELDS.get(action)
    return None if fields is None else _event(MEMORY_CHANGED, memory, fields=sorted(fields))


def passages_created(memories: Iterable[Memory]) -> None:
    """Publish that a document was stored as these memories."""
    hooks_raise([_event(MEMORY_CREATED, memory) for memory in memories])


def passages_forgotten(document_id: UUID) -> None:
    """Publish that a document is about to be deleted with all its memories. Call it before."""
    rows = _without_texts(Memory.objects.filter(document=document_id)).order_by("position")
    hooks_raise([_event(MEMORY_FORGOTTEN, memory, receipt_id=None) for memory in rows])


def memories_moved(*, memory_ids: Collection[UUID]) -> None:
    """Publish that these memories moved to another chat."""
    rows = _without_texts(Memory.objects.filter(pk__in=list(memory_ids)))
    hooks_raise([_event(MEMORY_CHANGED, memory, fields=["whatsapp_chat"]) for memory in rows])


def _without_texts(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    """Load only the fields that events need, without the texts."""
    return memories.only("memory_id", "chat_id", "visibility", "status", "document_id")


def _event(event_type: str, memory: Memory, **more: Any) -> HookEvent:
    data: dict[str, Any] = {
        "memory_id": str(memory.pk),
        "status": str(memory.status),
        "visibility": str(memory.visibility),
        **more,
    }
    if memory.document_id is not None:
        data["document_id"] = str(memory.document_id)
    return HookEvent(event_type, memory.pk, data, memory.chat_id)
