"""Make the vectors that memories lack, and remove the vectors of a model out of use."""

import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.dispatch import Signal
from django.utils import timezone

from memories_app.models import EmbeddingModel, EmbeddingState, Memory, MemoryEmbedding
from memoryproject.foundation.integrations.embedders.base import (
    Embedder,
    WrongDimensionsError,
    embed_covered,
)
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
    return Memory.objects.filter(~Exists(made)).exclude(content="").order_by("pk")


def memories_embed(
    *, embedder: Embedder, uncovered: Uncovered, progress: Callable[[int], object] = nothing
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
    """Note whether a worker is to make the vector of the memory's text, if there is none yet."""
    is_due = vector is None and memory.content
    memory.vector_due_at = timezone.now() if is_due else None


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


# The active embedding model: record the first one, and switch to another one.

logger = logging.getLogger(__name__)


def model_first(*, embedder: Embedder, kind: str, name: str) -> EmbeddingModel:
    """Return the active model. If there is none, the embedder's model becomes active.

    kind, name: EMBEDDER and EMBEDDING_MODEL. Raises EmbedderError if the embedder has to ask
    for its dimensions and the request fails.
    """
    active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    if active is not None:
        return active
    recorded = EmbeddingModel.objects.filter(model_id=embedder.model_id).first()
    model = recorded or _new(embedder, kind, name)
    model.state = str(EmbeddingState.ACTIVE)
    model.activated_at = timezone.now()
    try:
        with transaction.atomic():
            model.save()
    except IntegrityError:
        # Another process created it first.
        return EmbeddingModel.objects.get(state=EmbeddingState.ACTIVE)
    logger.info("The embedding model %s is the first one here.", model.model_id)
    return model


def model_verify(*, model: EmbeddingModel, embedder: Embedder) -> None:
    """Check the embedder's dimensions against the record.

    Raises WrongDimensionsError if they differ, EmbedderError if the embedder doesn't answer.
    """
    if embedder.dimensions != model.dimensions:
        raise WrongDimensionsError(
            model.model_id, given=embedder.dimensions, known=model.dimensions
        )


def model_begin(*, embedder: Embedder, kind: str, name: str) -> EmbeddingModel:
    """Return the record of the embedder's model: the active one, or one in preparation.

    An earlier run may have started the preparation. An unfinished preparation of another
    model is abandoned.

    Raises WrongDimensionsError where the model is recorded with other dimensions.
    """
    model = EmbeddingModel.objects.filter(model_id=embedder.model_id).first()
    if model is not None:
        model_verify(model=model, embedder=embedder)
        if model.state == str(EmbeddingState.ACTIVE):
            logger.info("The embedding model %s is in use already.", model.model_id)
            return model
    else:
        model = _new(embedder, kind, name)
    with transaction.atomic():
        given_up = EmbeddingModel.objects.filter(state=EmbeddingState.BUILDING)
        given_up.exclude(model_id=model.model_id).update(
            state=EmbeddingState.RETIRED, retired_at=timezone.now(), cleared_at=None
        )
        model.kind, model.name = kind, name
        model.state = str(EmbeddingState.BUILDING)
        model.retired_at = model.cleared_at = None
        model.save()
    return model


def model_switch(*, model: EmbeddingModel) -> EmbeddingModel | None:
    """Let recall use this model from now on; return the model that was active before.

    The caller's transaction makes it one step.
    """
    with transaction.atomic():
        now = timezone.now()
        before = EmbeddingModel.objects.select_for_update(no_key=True).filter(
            state=EmbeddingState.ACTIVE
        )
        old = before.first()
        if old is not None:
            old.state, old.retired_at, old.cleared_at = str(EmbeddingState.RETIRED), now, None
            old.save(update_fields=["state", "retired_at", "cleared_at"])
        model.state, model.activated_at = str(EmbeddingState.ACTIVE), now
        model.save(update_fields=["state", "activated_at"])
    return old


def _new(embedder: Embedder, kind: str, name: str) -> EmbeddingModel:
    return EmbeddingModel(
        model_id=embedder.model_id,
        kind=kind,
        name=name,
        dimensions=embedder.dimensions,
        calibration_midpoint=embedder.calibration.midpoint,
        calibration_slope=embedder.calibration.slope,
    )
