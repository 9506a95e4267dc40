"""Move memories and documents from one chat to another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import Max, QuerySet
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus, RevisionReason, SourceDocument, Visibility
from memories_app.search.facade import scope_of
from memories_app.store.deduplicate import revisions_add
from memories_app.store.memory_fields import memories_moved, passages_forgotten, scopes_lock
from memoryproject.foundation.audit.audit_events import SYSTEM


def memories_move(*, from_chat: UUID, to_chat: UUID) -> int:
    """Move all memories of one chat to another; return their number.

    A fact of both chats becomes one: the moved memory is superseded by the existing one, which
    receives the mentions of both. Call it in a transaction.
    """
    scopes = [scope_of(str(Visibility.CHAT), chat) for chat in (from_chat, to_chat)]
    scopes_lock(scopes)
    there = {memory.fact_key: memory for memory in _facts(scopes[1])}
    moved = _facts(scopes[0])
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


def memories_give(
    *,
    from_chat: UUID,
    to_chat: UUID,
    memories: Collection[UUID],
    documents: Collection[UUID],
    joined: Mapping[UUID, UUID],
    pinned: Collection[UUID] = (),
) -> None:
    """Move some memories and documents of one chat to another, where nothing is yet.

    ``joined``: memories that a merge of the two replaced by another one of the same fact; they are
    in force again, and the other one loses their mentions, and its pin if it is among ``pinned``:
    it had none before the merge. Call it in a transaction.
    """
    scopes_lock([scope_of(str(Visibility.CHAT), chat) for chat in (from_chat, to_chat)])
    SourceDocument.objects.filter(pk__in=documents, chat_id=from_chat).update(chat_id=to_chat)
    rows = Memory.objects.filter(pk__in=memories, chat_id=from_chat)
    moved = list(rows.values_list("pk", flat=True))
    rows.update(chat_id=to_chat)
    for key, other in joined.items():
        replaced = Memory.objects.filter(pk=key, chat_id=to_chat, superseded_by=other)
        memory = replaced.filter(status=MemoryStatus.SUPERSEDED).first()
        if memory is not None:
            _reinstate(memory, unpin=other in pinned)
    memories_moved(memory_ids=moved)


def _reinstate(memory: Memory, *, unpin: bool) -> None:
    """Put a memory in force again, unless its new scope has the fact already."""
    if _facts(memory.scope).filter(fact_key=memory.fact_key).exists():
        return
    other = memory.superseded_by
    revisions_add([memory], reason=RevisionReason.UPDATED, actor=SYSTEM)
    memory.status = MemoryStatus.ACTIVE
    memory.superseded_by = memory.superseded_at = None
    memory.save()
    if other is not None:
        other.told_count = max(1, other.told_count - memory.told_count)
        last = other.tellings.aggregate(last=Max("told_at"))["last"]
        other.last_told_at = last or other.last_told_at
        other.pinned = other.pinned and not unpin
        other.save()


def facts_shared(*, one: UUID, other: UUID) -> int:
    """Return how many facts two chats both know: a merge makes one memory of each."""
    scopes = [scope_of(str(Visibility.CHAT), chat) for chat in (one, other)]
    return _facts(scopes[0]).filter(fact_key__in=_facts(scopes[1]).values("fact_key")).count()


def _facts(scope: str) -> QuerySet[Memory]:
    """Return the memories in force of one scope, without the passages of documents."""
    return Memory.objects.filter(status=MemoryStatus.ACTIVE, document__isnull=True, scope=scope)


def documents_move(*, from_chat: UUID, to_chat: UUID) -> None:
    """Move one chat's documents to another, in the caller's transaction.

    A document that both chats have is kept once.
    """
    for document in SourceDocument.objects.filter(chat_id=from_chat):
        same = SourceDocument.objects.filter(
            chat_id=to_chat, sha256=document.sha256, visibility=document.visibility
        )
        if same.exists():
            passages_forgotten(document.document_id)
            document.delete()
        else:
            SourceDocument.objects.filter(pk=document.pk).update(chat_id=to_chat)
