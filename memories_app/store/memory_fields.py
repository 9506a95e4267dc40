"""Set the fields of memories: those that are given, and those that are made of the text."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import Max, QuerySet
from django.utils import timezone

from memories_app.embedding_models.vectors import vector_due, vectors_request
from memories_app.facts.facts import Likeness, fact_key, kept_subject, likeness_of
from memories_app.facts.validation import PROMISE, NewMemory, promise_completed, storable_metadata
from memories_app.facts.validity import Validity, validity_of
from memories_app.models import ALONE, Memory, MemoryEmbedding, MemoryRevision
from memoryproject.foundation.audit.audit_events import Actor, Event, audit_record_many
from memoryproject.foundation.outgoing_webhooks.deliveries import HookEvent, hooks_raise
from memoryproject.foundation.outgoing_webhooks.models import EventType
from memoryproject.foundation.text.terms import MAX_TERMS, IndexedText, index_text


def content_hash(content: str) -> str:
    """Return the hex SHA-256 of the text, the only form of it that logs may contain."""
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()


def fact_key_of(new: NewMemory) -> str:
    """Return the key under which its scope has it once.

    It is that of its text. A keyed memory has that of its namespace and key, and one that isn't
    deduplicated a new one.
    """
    if new.key is not None:
        place = f"{new.namespace}\0{new.key}"
        return f"{ALONE}{hashlib.sha256(place.encode()).hexdigest()[:60]}"
    return fact_key(new.content) if new.dedupe else f"{ALONE}{uuid4().hex}"


def likeness_to_compare(new: NewMemory) -> Likeness:
    """Return the form in which it is compared; that of nothing if it stands alone."""
    compared = new.dedupe and new.key is None
    return likeness_of(new.content) if compared else Likeness("", ())


def memory_row(new: NewMemory, indexed: IndexedText, **values: Any) -> Memory:
    """Return a memory that isn't saved yet.

    ``indexed``: the terms of its text. ``values``: the fields that ``new`` doesn't have.
    """
    said_at = new.said_at or values["created_at"]
    validity = validity_given(new, said_at)
    metadata = storable_metadata(new.metadata)
    return Memory(
        content=new.content,
        content_hash=content_hash(new.content),
        type=new.type,
        category=new.category,
        tags=list(new.tags),
        visibility=new.visibility,
        chat_id=new.chat_id,
        source=new.source,
        source_message_id=new.source_message_id,
        metadata=promise_completed(metadata) if new.type == PROMISE else metadata,
        namespace=new.namespace,
        key=new.key,
        value=new.value,
        confidence=new.confidence,
        pinned=new.pinned,
        expires_at=new.expires_at,
        said_at=said_at,
        valid_from=validity.begins,
        valid_until=validity.ends,
        terms=indexed.terms,
        term_count=indexed.length,
        **values,
    )


def validity_given(new: NewMemory, said_at: datetime) -> Validity:
    """Return when a new memory holds: as it is given with it, else as its text says.

    A promise doesn't end with its day: it is overdue then. A keyed memory is data, whose words say
    nothing about its time.
    """
    if new.type == PROMISE or new.key is not None:
        return Validity(new.valid_from, new.valid_until)
    if new.valid_from is None and new.valid_until is None:
        return validity_of(new.content, said_at)
    return Validity(new.valid_from, new.valid_until)


def content_set(memory: Memory, *, content: str, vector: list[float] | None, model_id: str) -> None:
    """Set another text of a memory, with everything derived from it.

    Vectors of other models are deleted: they belong to the old text. The caller saves the
    memory.
    """
    _validity_follow(memory, content)
    memory.content = content
    memory.content_hash = content_hash(content)
    if not memory.stands_alone:
        memory.fact_key = fact_key(content)
        memory.likeness = [*likeness_of(content).keys, *kept_subject(memory.likeness)]
    terms_set(memory)
    MemoryEmbedding.objects.filter(memory=memory).delete()
    vector_due(memory, vector)
    vectors_request([memory])
    if vector is not None:
        MemoryEmbedding.objects.create(memory=memory, model=model_id, vector=vector)


def _validity_follow(memory: Memory, content: str) -> None:
    """Set the times that the old text told to those of the new one; others are kept."""
    if memory.type == PROMISE or memory.key is not None:
        return
    old, new = (validity_of(text, memory.said_at) for text in (memory.content, content))
    if memory.valid_from == old.begins:
        memory.valid_from = new.begins
    if memory.valid_until == old.ends:
        memory.valid_until = new.ends


def terms_set(memory: Memory) -> None:
    """Set the terms by which a memory is found, after its text or its tags changed."""
    indexed = memory_terms(memory.content, memory.tags)
    memory.terms = indexed.terms
    memory.term_count = indexed.length


# Locks of scopes: only one transaction at a time compares the memories of a scope.


def scopes_lock(scopes: Iterable[str]) -> None:
    """Wait for and take the locks of these scopes; held until the transaction ends.

    Take them after the locks of chats, sessions and turns, and before any row of a memory.
    """
    names_lock(f"memories {scope}" for scope in scopes)


def names_lock(names: Iterable[str]) -> None:
    """Wait for and take the locks of these names; held until the transaction ends.

    They are always taken in one order, so that no deadlock occurs.
    """
    digests = {hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names}
    with connection.cursor() as cursor:
        for key in sorted(int.from_bytes(each, "big", signed=True) for each in digests):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


# The record of changes: audit events, revisions, and events for integrators.

# An action, its memory, and details.
Done = tuple[str, Memory, Mapping[str, Any]]


def memory_audit(action: str, memory: Memory, actor: Actor, **details: object) -> None:
    """Record a memory's change in the audit log and publish it to integrators.

    The audit log holds only the hash of the content.
    """
    memories_audit([(action, memory, details)], actor)


def memories_audit(done: Sequence[Done], actor: Actor) -> None:
    """Do ``memory_audit`` for many memories at once.

    An event concerns the chat of its memory, whoever acts: what staff and the owner do to a
    person's memories is in that person's audit trail.
    """
    audit_record_many(
        events=[
            Event(
                action,
                actor,
                "memory",
                memory.pk,
                memory.content_hash,
                details,
                chat_id=memory.chat_id,
            )
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
            value=memory.value,
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


# Events for integrators: ids and fixed words, never the content.

_TYPES = {
    "memory.remember": EventType.MEMORY_CREATED,
    "memory.import": EventType.MEMORY_CREATED,
    "memory.unreject": EventType.MEMORY_CREATED,
    "memory.forget": EventType.MEMORY_FORGOTTEN,
    "memory.reject": EventType.MEMORY_FORGOTTEN,
}
# By action: the fields that may have changed, with their names in the REST API.
_FIELDS: dict[str, tuple[str, ...]] = {
    "memory.visibility": ("visibility",),
    "memory.pin": ("pinned",),
    "memory.unpin": ("pinned",),
    "memory.expiry": ("expires_at",),
    "memory.supersede": ("status",),
    "memory.approve": ("status",),
    "memory.reinstate": ("status",),
    "memory.unapprove": ("status",),
    "memory.merge": ("content", "pinned", "tags"),
}


def memory_event(action: str, memory: Memory, details: Mapping[str, Any]) -> HookEvent | None:
    """Return the event for an audited ``action``; None if integrators get none.

    A repeated mention of a known fact is no change.
    """
    if _TYPES.get(action) == EventType.MEMORY_FORGOTTEN:
        # The erasure names its receipt; a memory that is removed otherwise has none.
        return _event(EventType.MEMORY_FORGOTTEN, memory, receipt_id=None)
    if action in _TYPES:
        return _event(_TYPES[action], memory)
    fields = details.get("fields") if action == "memory.update" else _FIELDS.get(action)
    return (
        None if fields is None else _event(EventType.MEMORY_CHANGED, memory, fields=sorted(fields))
    )


def passages_created(memories: Iterable[Memory]) -> None:
    """Publish that a document was stored as these memories."""
    hooks_raise([_event(EventType.MEMORY_CREATED, memory) for memory in memories])


def passages_forgotten(document_id: UUID) -> None:
    """Publish that a document is about to be deleted with all its memories. Call it before."""
    rows = _without_texts(Memory.objects.filter(document=document_id)).order_by("position")
    hooks_raise([_event(EventType.MEMORY_FORGOTTEN, memory, receipt_id=None) for memory in rows])


def memories_moved(*, memory_ids: Collection[UUID]) -> None:
    """Publish that these memories moved to another chat."""
    rows = _without_texts(Memory.objects.filter(pk__in=list(memory_ids)))
    hooks_raise(
        [_event(EventType.MEMORY_CHANGED, memory, fields=["whatsapp_chat"]) for memory in rows]
    )


def _without_texts(memories: QuerySet[Memory]) -> QuerySet[Memory]:
    """Load only the fields that events need, without the texts."""
    return memories.only("memory_id", "chat_id", "visibility", "status", "document_id")


def _event(event_type: str, memory: Memory, **more: Any) -> HookEvent:
    data: dict[str, Any] = {
        "memory_id": str(memory.pk),
        "status": str(memory.status),
        "visibility": str(memory.visibility),
        **more,
    }
    if memory.document_id is not None:
        data["document_id"] = str(memory.document_id)
    return HookEvent(event_type, memory.pk, data, memory.chat_id)


# The terms by which a memory is found: the words of its text and of its tags.


def memory_terms(content: str, tags: Iterable[str]) -> IndexedText:
    """Return the terms of a memory.

    A tag adds the words that the text doesn't have, and nothing to its length: a tagged memory is
    not judged as a longer one.
    """
    indexed = index_text(content)
    of_tags = (term for tag in tags for term in index_text(tag).terms)
    added = dict.fromkeys(term for term in of_tags)
    known = set(indexed.terms)
    terms = [*indexed.terms, *(term for term in added if term not in known)]
    return replace(indexed, terms=terms[:MAX_TERMS])
