"""Retract memories that were extracted from a message that was revoked or edited."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memories_app.models import Memory, MemorySource, MemoryStatus
from memories_app.store.delete import memories_delete
from memories_app.store.scope_locks import scopes_lock
from memories_app.store.supersede import memory_reinstate
from memoryproject.foundation.audit.audit_events import Actor

# The source of memories that were extracted without a command.
EXTRACTION = "extraction"


def memories_retract(*, message_id: UUID, actor: Actor) -> list[UUID]:
    """Undo the extraction of memories from a message that was revoked or edited.

    Memories with no other source are deleted, and those that they superseded become active
    again. Memories with other sources only lose this one. Memories that a command stored stay.
    Return the ids of the deleted memories.
    """
    with transaction.atomic():
        scopes_lock(_learned_from(message_id).values_list("scope", flat=True))
        gone = []
        for memory in _learned_from(message_id).order_by("created_at", "memory_id"):
            others = _remove_source(memory, message_id)
            if others:
                _keep(memory, others)
            else:
                _reinstate(memory, actor)
                gone.append(memory.pk)
        return memories_delete(memory_ids=gone, actor=actor) if gone else []


def _learned_from(message_id: UUID) -> QuerySet[Memory]:
    """Return the memories extracted from the message. Merged ones have passed their sources on."""
    sources = MemorySource.objects.filter(source=EXTRACTION, source_message_id=message_id)
    by_source = Q(pk__in=sources.values("memory_id"))
    return Memory.objects.filter(by_source | Q(source=EXTRACTION, source_message_id=message_id))


def _remove_source(memory: Memory, message_id: UUID) -> list[MemorySource]:
    """Remove this source; return the others, oldest first."""
    memory.tellings.filter(source=EXTRACTION, source_message_id=message_id).delete()
    return list(memory.tellings.order_by("told_at", "id"))


def _keep(memory: Memory, tellings: list[MemorySource]) -> None:
    first = tellings[0]
    memory.source = first.source
    memory.source_message_id = first.source_message_id
    memory.told_count = max(memory.told_count - 1, 1)
    memory.last_told_at = tellings[-1].told_at
    memory.save(
        update_fields=["source", "source_message_id", "told_count", "last_told_at", "updated_at"]
    )


def _reinstate(memory: Memory, actor: Actor) -> None:
    """Reinstate the memories that this memory superseded.

    They are superseded by its successor. Without a successor they become active again, unless
    another memory states the same.
    """
    for older in memory.supersedes.order_by("-superseded_at", "memory_id"):
        if memory.superseded_by_id is not None:
            older.superseded_by_id = memory.superseded_by_id
            older.save(update_fields=["superseded_by", "updated_at"])
            continue
        same = Memory.objects.filter(
            scope=older.scope,
            fact_key=older.fact_key,
            status=MemoryStatus.ACTIVE,
            document__isnull=True,
        )
        if same.exists():
            continue
        memory_reinstate(older, actor=actor)
