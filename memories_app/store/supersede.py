"""Lets one memory take the place of another."""

from __future__ import annotations

from datetime import datetime

from memories_app.models import Memory, MemoryStatus
from memories_app.store.deduplicate import memory_audit, revisions_add
from memoryproject.foundation.audit.events import Actor


def memory_supersede(
    *, older: Memory, newer: Memory, reason: str, actor: Actor, at: datetime
) -> None:
    """``older`` isn't recalled any more and points to ``newer``. In the caller's transaction,
    under the lock of their scope."""
    revisions_add([older], reason=reason, actor=actor)
    older.status = MemoryStatus.SUPERSEDED
    older.superseded_by = newer
    older.superseded_at = at
    older.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
    memory_audit("memory.supersede", older, actor, superseded_by=str(newer.pk), reason=str(reason))
