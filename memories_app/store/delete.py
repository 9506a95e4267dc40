"""Delete memories with everything that this app derived from them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from memories_app.models import Memory, MergeProposal
from memories_app.store.deduplicate import memories_audit
from memories_app.store.scope_locks import scopes_lock
from memoryproject.foundation.audit.events import Actor


def memories_delete(*, memory_ids: Sequence[UUID], actor: Actor) -> list[UUID]:
    """Delete memories with the memories that they superseded, and all that belongs to them.

    A forgotten price also deletes the older prices. Vectors, revisions, sources and proposals
    are deleted, too. Return the ids of the deleted memories; unknown ids are left out.
    """
    with transaction.atomic():
        found = Memory.objects.filter(pk__in=list(memory_ids))
        scopes_lock(found.values_list("scope", flat=True))
        gone = list(Memory.objects.filter(pk__in=with_older(memory_ids)).defer("terms"))
        # Their content is a copy of a memory's content.
        MergeProposal.objects.filter(parts__memory__in=gone).delete()
        memories_audit([("memory.forget", memory, {}) for memory in gone], actor)
        ids = [memory.pk for memory in gone]
        Memory.objects.filter(pk__in=ids).delete()
    return ids


def with_older(memory_ids: Sequence[UUID]) -> list[UUID]:
    """Return these memories and all that they superseded, directly or indirectly."""
    ids = list(memory_ids)
    known = dict.fromkeys(ids)
    while ids:
        older = Memory.objects.filter(superseded_by__in=ids).exclude(pk__in=list(known))
        ids = list(older.values_list("pk", flat=True))
        known.update(dict.fromkeys(ids))
    return list(known)
