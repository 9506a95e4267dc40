"""Memories as tests make them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memories_app.facts.validation import NewMemory
from memories_app.models import Memory
from memories_app.store.change import memory_locked, memory_patch, times_set
from memories_app.store.deduplicate import Remembered
from memories_app.store.remember import memory_remember
from memoryproject.foundation.audit.audit_events import SYSTEM, Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.embedding.choice import embedder as embedder_in_use


def remembered(
    content: str,
    *,
    embedder: Embedder | None = None,
    actor: Actor = SYSTEM,
    new_id: Callable[[], UUID] = uuid.uuid4,
    **fields: Any,
) -> Remembered:
    """Store a memory, the owner's where nothing else is given."""
    new = NewMemory(**{"content": content, "visibility": "owner", **fields})
    return memory_remember(new, embedder=embedder or embedder_in_use(), actor=actor, new_id=new_id)


def remember(content: str, **changes: Any) -> Memory:
    return remembered(content, **changes).memory


def memory_update(*, memory_id: UUID, actor: Actor, embedder: Embedder, **changes: Any) -> Memory:
    """Change the fields of a memory that are given."""
    return memory_patch(memory_id=memory_id, changes=changes, actor=actor, embedder=embedder)


def memory_expire_at(*, memory_id: UUID, at: datetime | None, actor: Actor) -> None:
    with transaction.atomic():
        times_set(memory_locked(memory_id), {"expires_at": at}, actor)
