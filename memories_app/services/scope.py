"""Which chat a memory belongs to."""

from __future__ import annotations

from uuid import UUID

from django.utils import timezone

from memories_app.models import Memory, MemoryStatus, RevisionReason, Visibility
from memories_app.services.documents import documents_move
from memories_app.services.hooks import memories_moved
from memories_app.services.locks import scope_of, scopes_lock
from memories_app.services.storing import revisions_add
from memoryproject.audit.events import SYSTEM


def memories_move(*, from_chat: UUID, to_chat: UUID) -> int:
    """Give all memories of one chat to another; returns how many. A fact that both have is
    one from then on: the moved one points to the one that was there, which counts as told
    by both. Call it in a transaction."""
    scopes = [scope_of(str(Visibility.CHAT), chat) for chat in (from_chat, to_chat)]
    scopes_lock(scopes)
    told = Memory.objects.filter(status=MemoryStatus.ACTIVE, document__isnull=True)
    there = {memory.fact_key: memory for memory in told.filter(scope=scopes[1])}
    moved = told.filter(scope=scopes[0])
    for memory in moved.filter(fact_key__in=list(there)):
        kept = there[memory.fact_key]
        revisions_add([memory], reason=RevisionReason.MERGED, actor=SYSTEM)
        memory.status = MemoryStatus.SUPERSEDED
        memory.superseded_by = kept
        memory.superseded_at = timezone.now()
        memory.save()
        kept.told_count += memory.told_count
        kept.last_told_at = max(kept.last_told_at, memory.last_told_at)
        kept.pinned = kept.pinned or memory.pinned
        kept.save()
    documents_move(from_chat=from_chat, to_chat=to_chat)
    moved_ids = list(Memory.objects.filter(chat_id=from_chat).values_list("pk", flat=True))
    Memory.objects.filter(pk__in=moved_ids).update(chat_id=to_chat)
    memories_moved(memory_ids=moved_ids)
    return len(moved_ids)
