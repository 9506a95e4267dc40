"""Decide about new memories: store, mention again, or supersede an older one."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from memories_app import errors, visibility
from memories_app.embedding_models.vectors import vector_due, vectors_request
from memories_app.facts import facts, renewals, validation
from memories_app.facts.validity import Validity
from memories_app.models import Memory, MemoryEmbedding, MemorySource, MemoryStatus, RevisionReason
from memories_app.store import duplicate_lookup, memory_fields
from memories_app.store.change import differs
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.staff_notices import Kind, notify
from memoryproject.foundation.text.terms import IndexedText

CREATED, DUPLICATE, SUPERSEDING = "created", "duplicate", "superseding"
MERGED = ("tags", "metadata")
# What a mention or a newer memory changes in a known one.
CHANGED = (
    *("told_count", "last_told_at", "expires_at", "said_at", "valid_from", "valid_until"),
    *("status", "superseded_at", "updated_at"),
)


@dataclass(frozen=True)
class Prepared:
    """A new memory with everything that is computed from its text."""

    new: validation.NewMemory
    scope: str
    fact_key: str
    likeness: facts.Likeness
    vector: list[float] | None
    indexed: IndexedText

    @classmethod
    def of(cls, new: validation.NewMemory, fact_key: str, vector: list[float] | None) -> "Prepared":
        return cls(
            new=new,
            scope=visibility.scope_of(new.visibility, new.chat_id),
            fact_key=fact_key,
            likeness=memory_fields.likeness_to_compare(new),
            vector=vector,
            indexed=memory_fields.memory_terms(new.content, new.tags),
        )


@dataclass(frozen=True)
class Remembered:
    """The result for a memory. ``status`` is created, duplicate or superseding.

    duplicate: it was known and counts as mentioned again. superseding: it is new and replaced
    ``superseded``. ``merged``: the fields of a known memory that got something new. ``unsure``:
    staff are asked whether it replaces an older one.
    """

    memory: Memory
    status: str
    superseded: tuple[UUID, ...] = ()
    merged: tuple[str, ...] = ()
    unsure: bool = False


class Storing:
    """Store memories in the caller's transaction, with a constant number of statements."""

    def __init__(self, embedder: Embedder, actor: Actor, new_id: Callable[[], UUID]) -> None:
        self._embedder = embedder
        self._actor = actor
        self._new_id = new_id
        self._now = timezone.now()
        self._created: dict[UUID, Memory] = {}
        self._changed: dict[UUID, Memory] = {}
        self._vectors: list[MemoryEmbedding] = []
        self._tellings: list[MemorySource] = []
        self._revised: list[Memory] = []
        self._to_propose: list[tuple[Memory, Memory]] = []
        self._ended: list[Memory] = []
        self._compared = 0
        # As they were before tags or metadata were added.
        self._before_merge: dict[UUID, Memory] = {}

    def store(self, prepared: Sequence[Prepared]) -> list[Remembered]:
        """Decide about each memory in order, then write all."""
        memory_fields.scopes_lock(one.scope for one in prepared)
        # Only now: of two that wait for each other, the second is the newer one.
        self._now = timezone.now()
        statuses = [MemoryStatus.ACTIVE]
        if any(one.new.proposed for one in prepared):
            statuses.append(MemoryStatus.PROPOSED)
        known = duplicate_lookup.KnownFacts.load(
            scopes=[one.scope for one in prepared],
            likenesses=[one.likeness for one in prepared],
            subjects=[one.new.subject for one in prepared],
            fact_keys=[one.fact_key for one in prepared],
            statuses=statuses,
        )
        decided = [self._decide(one, known, place) for place, one in enumerate(prepared)]
        self._write()
        self._audit(decided)
        return decided

    def _decide(self, one: Prepared, known: duplicate_lookup.KnownFacts, place: int) -> Remembered:
        same = known.same(one.scope, one.fact_key, one.likeness, proposed=one.new.proposed)
        if same is not None:
            self._tell_again(same, one.new)
            merged = self._merge(same, one.new, place) if one.new.merges else ()
            return Remembered(same, DUPLICATE, merged=merged)
        memory = self._create(one)
        superseded: tuple[UUID, ...] = ()
        if one.new.supersedes and not one.new.proposed:
            validity = Validity(memory.valid_from, memory.valid_until)
            claim = duplicate_lookup.Claim.of(one.new, one.likeness, memory.said_at, validity)
            found = known.contradicted(one.scope, claim, self._now)
            if found == duplicate_lookup.Contradicted():
                found = self._renewed(one, memory, claim)
            superseded = self._take_places(memory, found)
        known.add(memory, one.scope)
        return Remembered(
            memory,
            SUPERSEDING if superseded else CREATED,
            superseded,
            unsure=bool(self._to_propose and self._to_propose[-1][0] is memory),
        )

    def _renewed(
        self, one: Prepared, memory: Memory, claim: duplicate_lookup.Claim
    ) -> duplicate_lookup.Contradicted:
        content = one.new.content if one.likeness.sense else ""
        is_new = one.likeness.renewed or renewals.says_new(content)
        if memory.valid_until or not (is_new or renewals.says_end(content)):
            return duplicate_lookup.Contradicted()
        if one.vector is None or self._compared >= duplicate_lookup.MAX_COMPARED:
            return duplicate_lookup.Contradicted()
        self._compared += 1
        model = self._embedder
        calibration = model.calibration if is_new else None
        found = duplicate_lookup.renewed_by(memory, claim, one.vector, model.model_id, calibration)
        # What an earlier one of the same batch has replaced already.
        found.replaced = [self._changed.get(each.pk, each) for each in found.replaced]
        found.replaced = [each for each in found.replaced if each.status == MemoryStatus.ACTIVE]
        return found

    def _take_places(
        self, memory: Memory, found: duplicate_lookup.Contradicted
    ) -> tuple[UUID, ...]:
        """Let a memory take the places of older ones; staff are asked about pinned ones."""
        taken = []
        for older in (*found.replaced, *found.ending):
            if older.pinned:
                self._to_propose.append((memory, older))
                continue
            taken.append(older.pk)
            if older in found.replaced:
                self._supersede(older, memory)
            else:
                older.valid_until = duplicate_lookup.last_before(memory)
                self._touch(older)
                self._ended.append(older)
        self._to_propose += [(memory, older) for older in found.unsure]
        return tuple(taken)

    def _create(self, one: Prepared) -> Memory:
        new = one.new
        memory = memory_fields.memory_row(
            new,
            one.indexed,
            memory_id=self._new_id(),
            status=MemoryStatus.PROPOSED if new.proposed else MemoryStatus.ACTIVE,
            last_told_at=self._now,
            created_at=self._now,
            fact_key=one.fact_key,
            likeness=[*one.likeness.keys, *facts.subject_keys(new.subject, new.speaker)],
        )
        self._created[memory.pk] = memory
        vector_due(memory, one.vector)
        if one.vector is not None:
            self._vectors.append(
                MemoryEmbedding(memory=memory, model=self._embedder.model_id, vector=one.vector)
            )
        self._tellings.append(self._memory_source(memory, new))
        return memory

    def _tell_again(self, memory: Memory, new: validation.NewMemory) -> None:
        """Record a repeated mention; it renews an expired memory and never shortens its life."""
        memory.told_count += 1
        memory.last_told_at = self._now
        ended = memory.expires_at is not None and memory.expires_at <= self._now
        later = memory.expires_at and new.expires_at and new.expires_at > memory.expires_at
        if ended or later:
            memory.expires_at = new.expires_at
        said_at = new.said_at or self._now
        if said_at >= memory.said_at:
            self._say_again(memory, memory_fields.validity_given(new, said_at), said_at)
        self._touch(memory)
        self._tellings.append(self._memory_source(memory, new))

    def _say_again(self, memory: Memory, validity: Validity, said_at: datetime) -> None:
        """Set when it was said last; "tomorrow" is another day now, and what had ended holds again.

        Times that the words don't tell stay.
        """
        memory.said_at = said_at
        has_ended = memory.valid_until is not None and memory.valid_until < said_at
        if validity != Validity() or has_ended:
            memory.valid_from, memory.valid_until = validity.begins, validity.ends

    def _merge(self, memory: Memory, new: validation.NewMemory, place: int) -> tuple[str, ...]:
        """Add tags and metadata to a known memory; return the names of the fields that changed.

        A name of the metadata that it has already gets the new value. Raises MemoryValidationError
        where it would get more than a memory may have.
        """
        tags = [*memory.tags, *dict.fromkeys(tag for tag in new.tags if tag not in memory.tags)]
        metadata = {**memory.metadata, **validation.storable_metadata(new.metadata)}
        problems = [*validation.tag_problems(tuple(tags)), *validation.metadata_problems(metadata)]
        if problems:
            raise errors.MemoryValidationError([errors.Problem(*each, place) for each in problems])
        wanted = {"tags": tags, "metadata": metadata}
        merged = tuple(name for name in wanted if differs(getattr(memory, name), wanted[name]))
        if merged and memory.pk not in self._created:
            self._before_merge.setdefault(memory.pk, copy.copy(memory))
        memory.tags, memory.metadata = tags, metadata
        if "tags" in merged:
            memory_fields.terms_set(memory)
        return merged

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

    def _memory_source(self, memory: Memory, new: validation.NewMemory) -> MemorySource:
        return MemorySource(
            memory=memory,
            source=new.source,
            source_message_id=new.source_message_id,
            told_at=self._now,
        )

    def _write(self) -> None:
        # Before the new ones: a scope may hold only one active memory of a fact.
        Memory.objects.bulk_update(self._changed.values(), CHANGED)
        Memory.objects.bulk_create(self._created.values())
        proposed = (one for one in self._created.values() if one.status == MemoryStatus.PROPOSED)
        # Without the chat: here it is a plain column, and may name none.
        notify(Kind.SUGGESTED, ((memory.pk, None) for memory in proposed))
        linked = [memory for memory in self._changed.values() if memory.superseded_by_id]
        Memory.objects.bulk_update(linked, ["superseded_by"])
        merged = [self._changed[memory_id] for memory_id in self._before_merge]
        Memory.objects.bulk_update(merged, [*MERGED, "terms"])
        MemoryEmbedding.objects.bulk_create(self._vectors)
        vectors_request(self._created.values())
        MemorySource.objects.bulk_create(self._tellings, ignore_conflicts=True)
        memory_fields.revisions_add(
            self._revised, reason=RevisionReason.SUPERSEDED, actor=self._actor
        )
        before = list(self._before_merge.values())
        memory_fields.revisions_add(before, reason=RevisionReason.UPDATED, actor=self._actor)
        for newer, older in self._to_propose:
            duplicate_lookup.replacement_propose(newer=newer, older=older)

    def _audit(self, decided: Sequence[Remembered]) -> None:
        done: list[memory_fields.Done] = []
        for one in decided:
            action = "memory.reinforce" if one.status == DUPLICATE else "memory.remember"
            done.append((action, one.memory, {"visibility": one.memory.visibility}))
        for memory_id, before in self._before_merge.items():
            memory = self._changed[memory_id]
            fields = [name for name in MERGED if getattr(before, name) != getattr(memory, name)]
            done.append(("memory.update", memory, {"fields": sorted(fields)}))
        done += [("memory.update", older, {"fields": ["valid_until"]}) for older in self._ended]
        for older in self._revised:
            newer = str(older.superseded_by_id)
            done.append(("memory.supersede", older, {"superseded_by": newer}))
        memory_fields.memories_audit(done, self._actor)
