"""Make the vectors that memories lack, and remove the vectors of a model out of use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.dispatch import Signal
from django.utils import timezone

from memories_app.models import Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.process.narrowing import present

# The embedder's own batch size.
BATCH = 256
DELETED_AT_ONCE = 5_000
# Some seconds of the default embedder: then what was made is stored.
DUE_BATCH = 64
# A worker has its batch for so long. After a failure, or its death, the batch is due again.
DUE_AGAIN = timedelta(minutes=2)
# The sweep comes each minute.
DUE_SECONDS = 45.0

# Sent when memories were stored without a vector: a worker is to make it. In the transaction.
vectors_due = Signal()

Uncovered = dict[UUID, str]
"""The memories that a model doesn't cover, with their content's hash: they were tried."""


def nothing(_count: int) -> None:
    """Ignore progress: the default of callers that don't show it."""


def memories_lacking(model_id: str) -> QuerySet[Memory]:
    """Return the memories without a vector of this model.

    Texts that the model doesn't cover never have one.
    """
    made = MemoryEmbedding.objects.filter(memory=OuterRef("pk"), model=model_id)
    return Memory.objects.filter(~Exists(made)).order_by("pk")


def memories_embed(
    *,
    embedder: Embedder,
    uncovered: Uncovered,
    progress: Callable[[int], object] = nothing,
) -> int:
    """Make the vectors that memories lack; return how many were made.

    uncovered: receives the texts that the model doesn't cover; they are skipped when they come
    again. progress: called after each batch with its number of memories. Raises EmbedderError;
    vectors that were made before stay.
    """
    made = 0
    lacking = memories_lacking(embedder.model_id).only("pk", "content", "content_hash")
    batch = list(lacking[:BATCH])
    while batch:
        fresh = [each for each in batch if uncovered.get(each.pk) != each.content_hash]
        made += _embed(fresh, embedder, uncovered)
        progress(len(batch))
        batch = list(lacking.filter(pk__gt=batch[-1].pk)[:BATCH])
    return made


def memories_untried(*, model_id: str, uncovered: Uncovered) -> int:
    """Return how many memories lack a vector and were not tried with their current text."""
    lacking = memories_lacking(model_id).values_list("pk", "content_hash")
    return sum(uncovered.get(pk) != content_hash for pk, content_hash in lacking.iterator())


def vector_due(memory: Memory, vector: list[float] | None) -> None:
    """Note whether a worker is to make the memory's vector: it does if there is none yet."""
    memory.vector_due_at = timezone.now() if vector is None else None


def vectors_request(memories: Iterable[Memory]) -> None:
    """Let a worker make the vectors that these memories, which are stored, wait for.

    Where others waited before them, a job is queued already, or the sweep enqueues one.
    """
    since = min((each.vector_due_at for each in memories if each.vector_due_at), default=None)
    if since is not None and not Memory.objects.filter(vector_due_at__lt=since).exists():
        vectors_due.send(Memory)


def due_vectors_make(*, embedder: Embedder, seconds: float = DUE_SECONDS) -> int:
    """Make the vectors that memories wait for; return how many memories it looked at.

    It begins no batch after so many seconds: other jobs wait, and the sweep enqueues this again.
    Several workers never take the same memories. Raises EmbedderError; the batch is due again
    later.
    """
    end = time.monotonic() + seconds
    done = 0
    while batch := _due_take():
        until = present(batch[0].vector_due_at)
        _embed(batch, embedder, {})
        # Not those that were changed meanwhile: they wait for the vector of their new text.
        mine = Memory.objects.filter(pk__in=[memory.pk for memory in batch], vector_due_at=until)
        mine.update(vector_due_at=None)
        done += len(batch)
        if time.monotonic() >= end:
            break
    return done


def _due_take() -> list[Memory]:
    """Take a batch of the memories that wait, longest first: they are due again after a while."""
    with transaction.atomic():
        due = Memory.objects.filter(vector_due_at__lte=timezone.now()).order_by("vector_due_at")
        taken = due.select_for_update(skip_locked=True, no_key=True)
        batch = list(taken.only("pk", "content", "content_hash", "vector_due_at")[:DUE_BATCH])
        until = timezone.now() + DUE_AGAIN
        for memory in batch:
            memory.vector_due_at = until
        mine = Memory.objects.filter(pk__in=[memory.pk for memory in batch])
        mine.update(vector_due_at=until)
    return batch


def vectors_waiting(before: datetime | None = None) -> int:
    """Return how many memories wait for a vector. before: since that time or longer."""
    waiting = Memory.objects.filter(vector_due_at__isnull=False)
    return (waiting.filter(vector_due_at__lte=before) if before else waiting).count()


def _embed(memories: list[Memory], embedder: Embedder, uncovered: Uncovered) -> int:
    vectors = embed_covered(embedder, [memory.content for memory in memories])
    made = {}
    for memory, vector in zip(memories, vectors, strict=True):
        if vector is None:
            uncovered[memory.pk] = memory.content_hash
        else:
            made[memory.pk] = (memory.content, vector)
    with transaction.atomic():
        # The lock is held until the vectors are stored: an edit waits and then removes them.
        same = Memory.objects.select_for_update(no_key=True).filter(pk__in=list(made))
        rows = [
            MemoryEmbedding(memory_id=pk, model=embedder.model_id, vector=made[pk][1])
            for pk, content in same.order_by("pk").values_list("pk", "content")
            # The memory was edited meanwhile: the vector belongs to the old text.
            if content == made[pk][0]
        ]
        MemoryEmbedding.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def vectors_delete(*, table: type[Model], model_id: str) -> int:
    """Remove a model's vectors from a table in small steps; return how many were removed."""
    deleted, last = 0, 0
    rows = table._default_manager.filter(model=model_id).order_by("pk")
    while keys := list(rows.filter(pk__gt=last).values_list("pk", flat=True)[:DELETED_AT_ONCE]):
        last = keys[-1]
        deleted += rows.filter(pk__in=keys).order_by()._raw_delete(connection.alias)
    return deleted
