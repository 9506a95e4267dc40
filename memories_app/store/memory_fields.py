"""Set the fields of memories: those that are given, and those that are made of the text."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from memories_app.embedding_models.facade import vector_due, vectors_request
from memories_app.facts.facade import (
    NewMemory,
    Validity,
    fact_key,
    kept_subject,
    likeness_of,
    memory_terms,
    storable_metadata,
    validity_of,
)
from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.text.terms import IndexedText


def content_hash(content: str) -> str:
    """Return the hex SHA-256 of the text, the only form of it that logs may contain."""
    return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()


def memory_row(new: NewMemory, indexed: IndexedText, **values: Any) -> Memory:
    """Return a memory that isn't saved yet.

    ``indexed``: the terms of its text. ``values``: the fields that ``new`` doesn't have.
    """
    said_at = new.said_at or values["created_at"]
    validity = validity_given(new, said_at)
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
        metadata=storable_metadata(new.metadata),
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
    """Return when a new memory holds: as it is given with it, else as its text says."""
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
