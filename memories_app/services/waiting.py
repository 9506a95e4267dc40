"""What staff decide about memories that wait for them."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memories_app.errors import MemoryStateError
from memories_app.models import Memory, MemoryStatus, RevisionReason
from memories_app.rules.facts import likeness_of
from memories_app.services.known import KnownFacts
from memories_app.services.locked import memory_locked
from memories_app.services.propose import replacement_propose
from memories_app.services.storing import memory_audit
from memories_app.services.supersede import memory_supersede
from memoryproject.audit.events import Actor


def memory_approve(*, memory_id: UUID, actor: Actor) -> Memory:
    """Let a proposed memory count from now on, as if it were told now: where it is known
    already the known one is told again, and what it contradicts is superseded. Returns the
    memory that counts. Raises MemoryNotFoundError, MemoryStateError."""
    with transaction.atomic():
        memory = _waiting(memory_id)
        now = timezone.now()
        likeness = likeness_of(memory.content)
        known = KnownFacts.load(
            scopes=[memory.scope], likenesses=[likeness], fact_keys=[memory.fact_key]
        )
        same = known.same(memory.scope, memory.fact_key, likeness)
        if same is not None:
            same.told_count += memory.told_count
            same.last_told_at = now
            same.save(update_fields=["told_count", "last_told_at", "updated_at"])
            memory_supersede(
                older=memory, newer=same, reason=RevisionReason.MERGED, actor=actor, at=now
            )
            return same
        for older in known.replaced(memory.scope, likeness, now):
            if older.pinned:
                replacement_propose(newer=memory, older=older)
            else:
                memory_supersede(
                    older=older, newer=memory, reason=RevisionReason.SUPERSEDED, actor=actor, at=now
                )
        memory.status = MemoryStatus.ACTIVE
        memory.save(update_fields=["status", "updated_at"])
        memory_audit("memory.approve", memory, actor)
    return memory


def memory_reject(*, memory_id: UUID, actor: Actor) -> None:
    """Delete a memory that waits. Raises MemoryNotFoundError, MemoryStateError."""
    with transaction.atomic():
        memory = _waiting(memory_id)
        memory_audit("memory.reject", memory, actor)
        memory.delete()


def _waiting(memory_id: UUID) -> Memory:
    memory = memory_locked(memory_id)
    if memory.status != MemoryStatus.PROPOSED:
        raise MemoryStateError(f"This memory doesn't wait for anybody: it is {memory.status}.")
    return memory
