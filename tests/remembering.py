"""Memories as tests make them."""

from __future__ import annotations

from typing import Any

from memories_app.models import Memory
from memories_app.store.remember import memory_remember
from sessions_app.embedding.choice import embedder


def remember(content: str, **changes: Any) -> Memory:
    """Store a memory, the owner's where nothing else is given."""
    values = {"visibility": "owner", "embedder": embedder(), **changes}
    return memory_remember(content=content, **values).memory
