"""Retract memories that were extracted from a message that was revoked or edited."""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from memories_app.facts.facts import fact_key
from memories_app.models import Memory, MemorySource, MemoryStatus, MergeProposal, Tombstone
from memories_app.store import change, duplicate_lookup, memory_fields
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.process.tracing import memory_span, note_records

# The source of memories that were extracted without a command.
EXTRACTION = "extraction"


def memories_retract(*, message_id: UUID, actor: Actor) -> list[UUID]:
    """Undo the extraction of memories from a message that was revoked or edited.

    Memories with no other source are deleted, and those that they superseded become active
    again. Memories with other sources only lose this one. Memories that a command stored stay.
    Return the ids of the deleted memories.
    """
    with transaction.atomic():
        memory_fields.scopes_lock(_learned_from(message_id).values_list("scope", flat=True))
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
        change.memory_reinstate(older, actor=actor)


# Delete memories with all that was derived from them, and keep tombstones of forgotten texts.


def keyed_hash(text: str, *, purpose: str) -> str:
    """Return the hex HMAC-SHA-256 of the text with AUDIT_KEY, different for each purpose."""
    message = f"{purpose}\0{text}".encode(errors="surrogatepass")
    return hmac.new(settings.AUDIT_KEY.encode(), message, hashlib.sha256).hexdigest()


def tombstones_add(*, facts: Iterable[tuple[str, str]]) -> int:
    """Store tombstones of facts, each given by scope and text, in the caller's transaction."""
    stones = [Tombstone(scope=scope, key=_key(scope, text)) for scope, text in facts]
    Tombstone.objects.bulk_create(stones, ignore_conflicts=True)
    return len(stones)


def tombstones_remove(*, scope: str) -> int:
    """Delete the tombstones of a deleted scope."""
    return Tombstone.objects.filter(scope=scope).delete()[0]


def is_forgotten(*, content: str, scope: str) -> bool:
    """Return whether this fact was forgotten in the scope."""
    return bool(forgotten_among(texts=[content], scope=scope))


def forgotten_among(*, texts: Iterable[str], scope: str) -> set[str]:
    """Return those of the texts whose facts were forgotten in the scope."""
    keys = {text: _key(scope, text) for text in texts}
    stones = Tombstone.objects.filter(scope=scope, key__in=keys.values())
    found = set(stones.values_list("key", flat=True))
    return {text for text, key in keys.items() if key in found}


def _key(scope: str, text: str) -> str:
    return keyed_hash(f"{scope}\0{fact_key(text)}", purpose="tombstone")


def memories_delete(*, memory_ids: Sequence[UUID], actor: Actor) -> list[UUID]:
    """Delete memories with the memories that they superseded, and all that belongs to them.

    A forgotten price also deletes the older prices. Vectors, revisions, sources and proposals are
    deleted, too. Return the ids of the deleted memories; unknown ids are left out.
    """
    with transaction.atomic():
        gone = memories_lock(memory_ids)
        proposals_delete([memory.pk for memory in gone])
        memories_remove(gone, actor=actor, details={})
    return [memory.pk for memory in gone]


def memories_lock(memory_ids: Collection[UUID]) -> list[Memory]:
    """Return these memories and those that they superseded, locked with their scopes."""
    found = Memory.objects.filter(pk__in=list(memory_ids))
    memory_fields.scopes_lock(found.order_by().values_list("scope", flat=True))
    rows = Memory.objects.filter(pk__in=with_older(memory_ids)).defer("terms", "content")
    return list(rows.select_for_update().order_by("pk"))


def proposals_delete(memory_ids: Collection[UUID]) -> dict[str, int]:
    """Delete the proposals to merge these memories, which copy their contents."""
    return MergeProposal.objects.filter(parts__memory__in=memory_ids).delete()[1]


@memory_span("delete_memory")
def memories_remove(
    gone: Sequence[Memory], *, actor: Actor, details: Mapping[str, Any]
) -> dict[str, int]:
    """Delete memories that are locked and have no proposals; return the deleted rows by model.

    ``details``: those of the audit events, such as the receipt of the erasure.
    """
    memory_fields.memories_audit([("memory.forget", memory, details) for memory in gone], actor)
    _, rows = Memory.objects.filter(pk__in=[memory.pk for memory in gone]).delete()
    _reopen(gone)
    note_records(len(gone))
    return rows


def _reopen(gone: Sequence[Memory]) -> None:
    """Let memories hold on that were to end when one of these began to hold."""
    for memory in gone:
        if memory.valid_from is not None:
            Memory.objects.filter(
                scope=memory.scope,
                status=MemoryStatus.ACTIVE,
                valid_until=duplicate_lookup.last_before(memory),
                likeness__overlap=memory.likeness,
            ).update(valid_until=None)


def with_older(memory_ids: Collection[UUID]) -> list[UUID]:
    """Return these memories and all that they superseded, directly or indirectly."""
    ids = list(memory_ids)
    known = dict.fromkeys(ids)
    while ids:
        older = Memory.objects.filter(superseded_by__in=ids).exclude(pk__in=list(known))
        ids = list(older.values_list("pk", flat=True))
        known.update(dict.fromkeys(ids))
    return list(known)
