"""Many memories at once, stored as ``memory_remember`` stores each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memories_app.facts.facts import fact_key, likeness_of
from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.base import Embedder, embed_covered
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.text.terms import index_text


def memories_store(
    texts: Sequence[str], *, embedder: Embedder | None = None, **fields: Any
) -> None:
    """``texts`` as memories of the owner, or with other ``fields``."""
    embedder = embedder or WordLlamaEmbedder()
    memories = []
    for text in texts:
        indexed = index_text(text)
        values = {
            "visibility": "owner",
            "fact_key": fact_key(text),
            "likeness": likeness_of(text).keys,
            "terms": indexed.terms,
            "term_count": indexed.length,
        }
        memories.append(Memory(content=text, **{**values, **fields}))
    Memory.objects.bulk_create(memories)
    MemoryEmbedding.objects.bulk_create(
        MemoryEmbedding(memory=memory, model=embedder.model_id, vector=vector)
        for memory, vector in zip(memories, embed_covered(embedder, texts), strict=True)
        if vector is not None
    )
