"""Forgets memories."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from memories_app.models import Memory
from memories_app.services.locks import scopes_lock
from memories_app.services.storing import memory_audit
from memoryproject.audit.events import Actor


def memory_forget(*, memory: Memory, actor: Actor) -> int:
    """Delete a memory with its vectors, revisions and tellings, and what it had superseded: a
    forgotten price takes the older prices along. Returns how many memories are gone."""
    with transaction.atomic():
        scopes_lock([memory.scope])
        gone = Memory.objects.filter(pk__in=_with_older([memory.pk]))
        count = 0
        for one in gone:
            memory_audit("memory.forget", one, actor)
            one.delete()
            count += 1
    return count


def _with_older(ids: list[UUID]) -> list[UUID]:
    """These memories and all that they superseded, one after the other."""
    known = dict.fromkeys(ids)
    while ids:
        older = Memory.objects.filter(superseded_by__in=ids).exclude(pk__in=list(known))
        ids = list(older.values_list("pk", flat=True))
        known.update(dict.fromkeys(ids))
    return list(known)
