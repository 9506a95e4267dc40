"""Stores a memory with its vector."""

from __future__ import annotations

import hashlib
import logging
from typing import Any
from uuid import UUID

from django.db import transaction

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.integrations.embedders.base import Embedder
from memoryproject.integrations.embedders.covered import covered_vectors
from memoryproject.lib.text.terms import index_text

logger = logging.getLogger(__name__)


def content_hash(content: str) -> str:
    """SHA-256 of the text, hex: what logs may show of it."""
    return hashlib.sha256(content.encode()).hexdigest()


def memory_remember(
    *,
    content: str,
    visibility: str,
    embedder: Embedder,
    chat_id: UUID | None = None,
    type: str = "fact",  # noqa: A002 the field's standard name
    source: str = "",
    source_message_id: UUID | None = None,
    metadata: dict[str, Any] | None = None,
) -> Memory:
    """Store a memory. Asking again for the same source message gives the same memory.

    A text that the embedder doesn't cover has no vector and is found by its words.
    The vector is made before the transaction, so that none is open while a provider is
    asked. Raises EmbedderError when no vector can be made, DatabaseError when nothing can be
    stored; in both cases nothing is stored.
    """
    if source == "command" and source_message_id is not None:
        stored = Memory.objects.filter(source=source, source_message_id=source_message_id).first()
        if stored is not None:
            return stored
    vector = covered_vectors(embedder, [content])[0]
    indexed = index_text(content)
    with transaction.atomic():
        memory = Memory.objects.create(
            content=content,
            content_hash=content_hash(content),
            type=type,
            visibility=visibility,
            chat_id=chat_id,
            source=source,
            source_message_id=source_message_id,
            metadata=metadata or {},
            terms=indexed.terms,
            term_count=indexed.length,
        )
        if vector is not None:
            MemoryEmbedding.objects.create(memory=memory, model=embedder.model_id, vector=vector)
    logger.info("Memory %s was stored (%s).", memory.memory_id, memory.content_hash[:12])
    return memory
