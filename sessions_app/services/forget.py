"""Forgets memories."""

from __future__ import annotations

from memories_app.models import Memory
from memories_app.services.delete import memories_delete
from memoryproject.audit.events import Actor


def memory_forget(*, memory: Memory, actor: Actor) -> int:
    """Delete a memory with all that was derived from it in its app, and what it had
    superseded. Returns how many memories are gone."""
    return len(memories_delete(memory_ids=[memory.pk], actor=actor))
