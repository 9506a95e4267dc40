"""Change several fields of a memory at once: all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from memories_app.errors import MemoryStateError, MemoryValidationError, Problem
from memories_app.facts.facade import FACT_TIMES, label_problems, visibility_problems
from memories_app.models import Memory, MemoryStatus
from memories_app.search.facade import scope_of
from memories_app.store.change import (
    memory_expire_at,
    memory_get,
    memory_locked,
    memory_pin,
    memory_set_times,
    memory_set_visibility,
    memory_update,
)
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Calibration, Embedder
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.outgoing_webhooks.webhook_events import hooks_gathered
from memoryproject.foundation.process.narrowing import present

TEXTS = ("content", "type", "category", "tags", "metadata")


def memory_patch(
    *,
    memory_id: UUID,
    changes: Mapping[str, Any],
    actor: Actor,
    embedder: Embedder,
    check: Callable[[Memory], None],
) -> Memory:
    """Change the given fields of a memory.

    They are content, type, category, tags, metadata, visibility, pinned, expires_at, said_at,
    valid_from and valid_until.

    ``check`` gets the locked memory before anything is changed; its errors are passed on.

    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, DuplicateFactError,
    EmbedderError, DatabaseError; nothing is changed then.
    """
    known = memory_get(memory_id)
    _refuse_wrong(known, changes)
    content = changes.get("content")
    is_new = content is not None and content != known.content
    # Before the transaction, so that none is open while a provider is called.
    vectors = embed_covered(embedder, [content]) if content is not None and is_new else []
    texts = {name: changes[name] for name in TEXTS if name in changes}
    with transaction.atomic(), hooks_gathered():
        memory = memory_locked(
            memory_id, also=scope_of(changes.get("visibility", known.visibility), known.chat_id)
        )
        check(memory)
        if content is not None and not is_new and memory.content != content:
            raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
        if memory.status == MemoryStatus.SUPERSEDED and changes:
            raise MemoryStateError(_("This memory was superseded: change the newer one."))
        if texts:
            ahead = MadeAhead(embedder, vectors)
            memory_update(memory_id=memory_id, actor=actor, embedder=ahead, **texts)
        if "visibility" in changes:
            memory_set_visibility(
                memory_id=memory_id, visibility=changes["visibility"], actor=actor
            )
        if "pinned" in changes:
            memory_pin(memory_id=memory_id, pinned=changes["pinned"], actor=actor)
        if "expires_at" in changes:
            memory_expire_at(memory_id=memory_id, at=changes["expires_at"], actor=actor)
        times = {name: changes[name] for name in FACT_TIMES if name in changes}
        if times:
            memory_set_times(memory_id=memory_id, times=times, actor=actor)
        return memory_get(memory_id)


def _refuse_wrong(known: Memory, changes: Mapping[str, Any]) -> None:
    """Refuse changes that are invalid, before a provider is called.

    Raises MemoryValidationError.
    """
    labels = {name: changes[name] for name in ("content", "type", "category") if name in changes}
    problems = label_problems(**labels)
    if "visibility" in changes:
        found = visibility_problems(changes["visibility"], known.chat_id)
        problems += [Problem(*each) for each in found]
    if problems:
        raise MemoryValidationError(problems)


class MadeAhead:
    """An embedder that returns one precomputed vector, for use in a transaction."""

    def __init__(self, embedder: Embedder, vectors: Sequence[list[float] | None]) -> None:
        self._embedder = embedder
        self._vector = vectors[0] if vectors else None

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def calibration(self) -> Calibration:
        return self._embedder.calibration

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        vector = present(self._vector)
        return [vector for _ in texts]

    def coverage(self, text: str) -> float:
        """Return 1 if there is a vector, else 0."""
        return 0.0 if self._vector is None else 1.0
