"""Import exported memories unchanged, each only once."""

import logging
import uuid
from collections.abc import Callable, Sequence
from uuid import UUID

from django.db import transaction

from memories_app.embedding_models.vectors import vector_due, vectors_request
from memories_app.models import (
    EmbeddingModel,
    Memory,
    MemoryEmbedding,
    MemoryRevision,
    MemorySource,
    MemoryStatus,
)
from memories_app.store import memory_fields
from memories_app.store.transfer_record import Record
from memories_app.visibility import scope_of
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder, embed_awaited

logger = logging.getLogger(__name__)


class MemoryImport:
    """Import memories in parts. Nothing is superseded by the import itself.

    The records keep the state that they had at the export. ``finish`` links superseded memories
    to those that replaced them.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | None,
        actor: Actor,
        before_storing: Callable[[Sequence[Record]], None],
    ) -> None:
        """before_storing: called first in the transaction that stores a part."""
        self._embedder = embedder
        self._actor = actor
        self._before_storing = before_storing
        self._sizes = dict(EmbeddingModel.objects.values_list("model_id", "dimensions"))
        # Only links to memories that come later.
        self._links: dict[UUID, UUID] = {}

    def add(self, records: Sequence[Record]) -> list[bool]:
        """Import a part; return for each record whether it was stored.

        A record is not stored if its id, its message or its fact exists already.
        Raises EmbedderError, DatabaseError; none of these records is stored then.
        """
        self._embed(records)
        with transaction.atomic():
            self._before_storing(records)
            memory_fields.scopes_lock(_scope(record) for record in records)
            known = _Known(records)
            stored = [known.claim(record) for record in records]
            fresh = [record for record, is_new in zip(records, stored, strict=True) if is_new]
            self._store(fresh)
        return stored

    def finish(self) -> None:
        """Finish the import. Call it after the last part."""
        self._link()
        self._links.clear()

    def _embed(self, records: Sequence[Record]) -> None:
        """Make the vectors that few records lack, before any transaction; a worker makes many."""
        for record in records:
            self._drop_misfits(record)
        embedder = self._embedder
        if embedder is None:
            return
        bare = [record for record in records if embedder.model_id not in record.embeddings]
        vectors = embed_awaited(embedder, [record.new.content for record in bare])
        for record, vector in zip(bare, vectors, strict=True):
            if vector is not None:
                record.embeddings[embedder.model_id] = vector

    def _drop_misfits(self, record: Record) -> None:
        """Drop vectors that aren't of their model's size: its index takes none of them."""
        for model, vector in list(record.embeddings.items()):
            if len(vector) != self._sizes.get(model, len(vector)):
                logger.warning("A vector of %s has %d numbers: left out.", model, len(vector))
                del record.embeddings[model]

    def _store(self, records: Sequence[Record]) -> None:
        memories = [_memory(record) for record in records]
        if self._embedder is not None:
            for memory, record in zip(memories, records, strict=True):
                vector_due(memory, record.embeddings.get(self._embedder.model_id))
        Memory.objects.bulk_create(memories)
        pairs = list(zip(memories, records, strict=True))
        # Their times of change are those of the export.
        for memory, record in pairs:
            memory.updated_at = record.updated_at
        Memory.objects.bulk_update(memories, ["updated_at"])
        MemoryEmbedding.objects.bulk_create(
            MemoryEmbedding(memory=memory, model=model, vector=vector)
            for memory, record in pairs
            for model, vector in record.embeddings.items()
        )
        MemoryRevision.objects.bulk_create(
            MemoryRevision(memory=memory, **values)
            for memory, record in pairs
            for values in record.revisions
        )
        MemorySource.objects.bulk_create(
            (
                MemorySource(memory=memory, **values)
                for memory, record in pairs
                for values in record.tellings or [_first_source(record)]
            ),
            ignore_conflicts=True,
        )
        for memory, record in pairs:
            if record.superseded_by is not None:
                self._links[memory.pk] = record.superseded_by
        memory_fields.memories_audit(
            [("memory.import", memory, {}) for memory in memories], self._actor
        )
        vectors_request(memories)
        self._link()

    def _link(self) -> None:
        """Link what can be linked already, to keep the rest small."""
        targets = set(self._links.values())
        there = set(Memory.objects.filter(pk__in=targets).values_list("pk", flat=True))
        ready = {old: new for old, new in self._links.items() if new in there}
        linked = [Memory(pk=old, superseded_by_id=new) for old, new in ready.items()]
        Memory.objects.bulk_update(linked, ["superseded_by"], batch_size=500)
        for old in ready:
            del self._links[old]


class _Known:
    """The stored memories and those of the current part."""

    def __init__(self, records: Sequence[Record]) -> None:
        ids = {record.memory_id for record in records if record.memory_id}
        messages = {record.new.source_message_id for record in records if _is_command(record)}
        keys = {memory_fields.fact_key_of(record.new) for record in records}
        scopes = {_scope(record) for record in records}
        memories = Memory.objects.order_by()
        self._ids = set(memories.filter(pk__in=ids).values_list("pk", flat=True))
        commands = memories.filter(source="command", source_message_id__in=messages)
        self._messages = set(commands.values_list("source_message_id", flat=True))
        active = memories.filter(status=MemoryStatus.ACTIVE, scope__in=scopes, fact_key__in=keys)
        self._facts = set(active.values_list("scope", "fact_key"))

    def claim(self, record: Record) -> bool:
        """Return whether the record is new, and remember it."""
        fact = (_scope(record), memory_fields.fact_key_of(record.new))
        active = record.status == MemoryStatus.ACTIVE
        command = record.new.source_message_id if _is_command(record) else None
        if (
            record.memory_id in self._ids
            or (command is not None and command in self._messages)
            or (active and fact in self._facts)
        ):
            return False
        record.memory_id = record.memory_id or uuid.uuid4()
        self._ids.add(record.memory_id)
        if command is not None:
            self._messages.add(command)
        if active:
            self._facts.add(fact)
        return True


def _scope(record: Record) -> str:
    return scope_of(record.new.visibility, record.new.chat_id)


def _is_command(record: Record) -> bool:
    return record.new.source == "command" and record.new.source_message_id is not None


def _first_source(record: Record) -> dict[str, object]:
    return {
        "source": record.new.source,
        "source_message_id": record.new.source_message_id,
        "told_at": record.created_at,
    }


def _memory(record: Record) -> Memory:
    new = record.new
    return memory_fields.memory_row(
        new,
        memory_fields.memory_terms(new.content, new.tags),
        memory_id=record.memory_id,
        status=record.status,
        told_count=record.told_count,
        last_told_at=record.last_told_at,
        superseded_at=record.superseded_at,
        created_at=record.created_at,
        fact_key=memory_fields.fact_key_of(new),
        likeness=memory_fields.likeness_to_compare(new).keys,
    )
