"""Let one memory supersede another."""

from __future__ import annotations

from datetime import datetime

from memories_app.models import Memory, MemoryStatus
from memories_app.store.deduplicate import memory_audit, revisions_add
from memoryproject.foundation.audit.audit_events import Actor


def memory_supersede(
    *, older: Memory, newer: Memory, reason: str, actor: Actor, at: datetime
) -> None:
    """Exclude ``older`` from recall and point it to ``newer``.

    Call it in a transaction that holds the lock of their scope.
    """
    revisions_add([older], reason=reason, actor=actor)
    older.status = MemoryStatus.SUPERSEDED
    older.superseded_by = newer
    older.superseded_at = at
    older.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_audit("memory.supersede", older, actor, superseded_by=str(newer.pk), reason=str(reason))


def memory_reinstate(memory: Memory, *, actor: Actor) -> None:
    """Undo ``memory_supersede``: the memory is recalled again.

    Call it in a transaction that holds the lock of the scope, after a check that no other active
    memory states the same.
    """
    memory.status = MemoryStatus.ACTIVE
    memory.superseded_by = None
    memory.superseded_at = None
    memory.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_audit("memory.reinstate", memory, actor)
