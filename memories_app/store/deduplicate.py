"""Decide about new memories: store, mention again, or supersede an older one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Max
from django.utils import timezone

from memories_app.facts.facade import Likeness, NewMemory, likeness_of, storable_metadata
from memories_app.models import (
    Memory,
    MemoryEmbedding,
    MemoryRevision,
    MemorySource,
    MemoryStatus,
    RevisionReason,
)
from memories_app.search.facade import scope_of
from memories_app.store.duplicate_lookup import KnownFacts
from memories_app.store.integration_events import memory_event
from memories_app.store.propose import replacement_propose
from memories_app.store.scope_locks import scopes_lock
from memoryproject.foundation.audit.audit_events import Actor, Event, audit_record_many
from memoryproject.foundation.bulk_rows import rows_add
from memoryproject.foundation.outgoing_webhooks.webhook_events import hooks_raise
from memoryproject.foundation.text.terms import IndexedText, index_text

CREATED, DUPLICATE, SUPERSEDING = "created", "duplicate", "superseding"


@dataclass(frozen=True)
class Prepared:
    """A new memory with everything that is computed from its text."""

    new: NewMemory
    scope: str
    fact_key: str
    likeness: Likeness
    vector: list[float] | None
    indexed: IndexedText

    @classmethod
    def of(cls, new: NewMemory, fact_key: str, vector: list[float] | None) -> Prepared:
        return cls(
            new=new,
            scope=scope_of(new.visibility, new.chat_id),
            fact_key=fact_key,
            likeness=likeness_of(new.content),
            vector=vector,
            indexed=index_text(new.content),
        )


@dataclass(frozen=True)
class Decided:
    memory: Memory
    status: str
    superseded: tuple[UUID, ...] = ()


class Storing:
    """Store memories in the caller's transaction, with a constant number of statements."""

    def __init__(self, model_id: str, actor: Actor, new_id: Callable[[], UUID]) -> None:
        self._model_id = model_id
        self._actor = actor
        self._new_id = new_id
        self._now = timezone.now()
        self._created: dict[UUID, Memory] = {}
        self._changed: dict[UUID, Memory] = {}
        self._vectors: list[MemoryEmbedding] = []
        self._tellings: list[MemorySource] = []
        self._revised: list[Memory] = []
        self._against_pinned: list[tuple[Memory, Memory]] = []

    def store(self, prepared: Sequence[Prepared]) -> list[Decided]:
        """Decide about each memory in order, then write all."""
        scopes_lock(one.scope for one in prepared)
        statuses = [MemoryStatus.ACTIVE]
        if any(one.new.proposed for one in prepared):
            statuses.append(MemoryStatus.PROPOSED)
        known = KnownFacts.load(
            scopes=[one.scope for one in prepared],
            likenesses=[one.likeness for one in prepared],
            fact_keys=[one.fact_key for one in prepared],
            statuses=statuses,
        )
        decided = [self._decide(one, known) for one in prepared]
        self._write()
        self._audit(decided)
        return decided

    def _decide(self, one: Prepared, known: KnownFacts) -> Decided:
        same = known.same(one.scope, one.fact_key, one.likeness, proposed=one.new.proposed)
        if same is not None:
            self._tell_again(same, one.new)
            return Decided(same, DUPLICATE)
        memory = self._create(one)
        superseded = []
        if not one.new.proposed:
            for older in known.replaced(one.scope, one.likeness, self._now):
                if older.pinned:
                    self._against_pinned.append((memory, older))
                else:
                    self._supersede(older, memory)
                    superseded.append(older.pk)
        known.add(memory, one.scope)
        return Decided(memory, SUPERSEDING if superseded else CREATED, tuple(superseded))

    def _create(self, one: Prepared) -> Memory:
        new = one.new
        memory = Memory(
            memory_id=self._new_id(),
            content=new.content,
            content_hash=hashlib.sha256(new.content.encode()).hexdigest(),
            type=new.type,
            category=new.category,
            tags=list(new.tags),
            visibility=new.visibility,
            chat_id=new.chat_id,
            source=new.source,
            source_message_id=new.source_message_id,
            metadata=storable_metadata(new.metadata),
            confidence=new.confidence,
            status=MemoryStatus.PROPOSED if new.proposed else MemoryStatus.ACTIVE,
            pinned=new.pinned,
            expires_at=new.expires_at,
            last_told_at=self._now,
            created_at=self._now,
            fact_key=one.fact_key,
            likeness=one.likeness.keys,
            terms=one.indexed.terms,
            term_count=one.indexed.length,
        )
        self._created[memory.pk] = memory
        if one.vector is not None:
            self._vectors.append(
                MemoryEmbedding(memory=memory, model=self._model_id, vector=one.vector)
            )
        self._tellings.append(self._memory_source(memory, new))
        return memory

    def _tell_again(self, memory: Memory, new: NewMemory) -> None:
        """Record a repeated mention; it renews an expired memory and never shortens its life."""
        memory.told_count += 1
        memory.last_told_at = self._now
        ended = memory.expires_at is not None and memory.expires_at <= self._now
        later = memory.expires_at and new.expires_at and new.expires_at > memory.expires_at
        if ended or later:
            memory.expires_at = new.expires_at
        self._touch(memory)
        self._tellings.append(self._memory_source(memory, new))

    def _supersede(self, older: Memory, newer: Memory) -> None:
        older.status = MemoryStatus.SUPERSEDED
        older.superseded_by = newer
        older.superseded_at = self._now
        self._touch(older)
        self._revised.append(older)

    def _touch(self, memory: Memory) -> None:
        if memory.pk not in self._created:
            memory.updated_at = self._now
            self._changed[memory.pk] = memory

    def _memory_source(self, memory: Memory, new: NewMemory) -> MemorySource:
        return MemorySource(
            memory=memory,
            source=new.source,
            source_message_id=new.source_message_id,
            told_at=self._now,
        )

    def _write(self) -> None:
        # Before the new ones: a scope may hold only one active memory of a fact.
        _store_changes(list(self._changed.values()))
        rows_add(list(self._created.values()))
        linked = [memory for memory in self._changed.values() if memory.superseded_by_id]
        Memory.objects.bulk_update(linked, ["superseded_by"])
        rows_add(self._vectors)
        MemorySource.objects.bulk_create(self._tellings, ignore_conflicts=True)
        revisions_add(self._revised, reason=RevisionReason.SUPERSEDED, actor=self._actor)
        for newer, older in self._against_pinned:
            replacement_propose(newer=newer, older=older)

    def _audit(self, decided: Sequence[Decided]) -> None:
        done: list[Done] = []
        for one in decided:
            action = "memory.reinforce" if one.status == DUPLICATE else "memory.remember"
            done.append((action, one.memory, {"visibility": one.memory.visibility}))
        for older in self._revised:
            newer = str(older.superseded_by_id)
            done.append(("memory.supersede", older, {"superseded_by": newer}))
        memories_audit(done, self._actor)


_CHANGED = {
    "told_count": "int",
    "last_told_at": "timestamptz",
    "expires_at": "timestamptz",
    "status": "varchar",
    "superseded_at": "timestamptz",
    "updated_at": "timestamptz",
}
# Django's bulk_update takes longer for ten rows than PostgreSQL for a thousand.
_CHANGE = f"""
UPDATE {Memory._meta.db_table} AS memory
SET {", ".join(f"{name} = given.{name}" for name in _CHANGED)}
FROM unnest(%s::uuid[], {", ".join(f"%s::{kind}[]" for kind in _CHANGED.values())})
    AS given(memory_id, {", ".join(_CHANGED)})
WHERE memory.memory_id = given.memory_id
"""  # noqa: S608 constants only


def _store_changes(memories: Sequence[Memory]) -> None:
    """Store the fields that a mention or a newer memory changes."""
    if not memories:
        return
    columns: list[list[Any]] = [[getattr(each, name) for each in memories] for name in _CHANGED]
    columns[list(_CHANGED).index("status")] = [str(each.status) for each in memories]
    with connection.cursor() as cursor:
        cursor.execute(_CHANGE, [[each.pk for each in memories], *columns])


# An action, its memory, and details.
Done = tuple[str, Memory, Mapping[str, Any]]


def memory_audit(action: str, memory: Memory, actor: Actor, **details: object) -> None:
    """Record a memory's change in the audit log and publish it to integrators.

    The audit log holds only the hash of the content.
    """
    memories_audit([(action, memory, details)], actor)


def memories_audit(done: Sequence[Done], actor: Actor) -> None:
    """Do ``memory_audit`` for many memories at once."""
    audit_record_many(
        events=[
            Event(action, actor, "memory", memory.pk, memory.content_hash, details)
            for action, memory, details in done
        ]
    )
    events = [memory_event(*one) for one in done]
    hooks_raise([event for event in events if event is not None])


def revisions_add(memories: Sequence[Memory], *, reason: str, actor: Actor) -> None:
    """Store the current content of these memories as revisions.

    Call it before they change, with their scopes locked.
    """
    if not memories:
        return
    newest = dict(
        MemoryRevision.objects.filter(memory__in=memories)
        .order_by()
        .values_list("memory")
        .annotate(newest=Max("number"))
    )
    MemoryRevision.objects.bulk_create(
        MemoryRevision(
            memory=memory,
            number=newest.get(memory.pk, 0) + 1,
            content=memory.content,
            visibility=memory.visibility,
            type=memory.type,
            category=memory.category,
            tags=memory.tags,
            changed_at=timezone.now(),
            changed_by_kind=actor.kind,
            changed_by_name=actor.name,
            reason=reason,
        )
        for memory in memories
    )
