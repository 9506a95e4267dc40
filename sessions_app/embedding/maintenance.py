"""Maintain the embeddings on a schedule.

Makes the index of the model in use, and removes the vectors of a retired model once no process
can be using them.
"""

import logging
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from django.db.models import Model
from django.utils import timezone

from memories_app.embedding_models.vectors import memories_embed, vectors_delete, vectors_waiting
from memories_app.models import EmbeddingModel, EmbeddingState, MemoryEmbedding
from memories_app.vector_search import index_drop, index_ensure
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.leases import advisory_lock
from memoryproject.foundation.process.narrowing import present
from sessions_app.embedding.message_vectors import messages_waiting, sessions_embed
from sessions_app.models import ChatSession, MessageEmbedding

logger = logging.getLogger(__name__)

# Longer than any task or request runs: see Q_CLUSTER's timeout.
KEEP = timedelta(minutes=15)
VECTORS: tuple[type[Model], ...] = (MemoryEmbedding, MessageEmbedding)


def embeddings_tend(*, embedder: Embedder, now: datetime, keep: timedelta = KEEP) -> dict[str, int]:
    """Make the active model's index if it is missing, and clear retired models.

    Clears the models that were retired ``keep`` ago. Returns how many indexes were made, and how
    many vectors were made and removed.

    embedder: the active model's. While it fails, nothing is removed.
    """
    done = {"indexes": 0, "made": 0, "removed": 0}
    active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    if active is None:
        return done
    try:
        with reembed_lock():
            done["indexes"] += indexes_ensure(active)
            retired = EmbeddingModel.objects.filter(
                state=EmbeddingState.RETIRED, retired_at__lte=now - keep, cleared_at__isnull=True
            )
            for model in retired:
                done["made"] += _make_up(model, embedder)
                done["removed"] += model_clear(model=model)
    except EmbedderError as error:
        logger.warning("What the embedding model before made is kept for now: %s", error)
    except ReembedRunningError:
        logger.info("Embeddings are left alone: memories_reembed is at work.")
    return done


def indexes_ensure(model: EmbeddingModel) -> int:
    """Create the model's indexes that aren't there; return how many."""
    return sum(index_ensure(model=model, table=table) for table in VECTORS)


def texts_waiting() -> int:
    """Return how many memories and messages wait until a worker makes their vectors."""
    active = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    return vectors_waiting() + messages_waiting(active.model_id) if active else 0


def model_clear(*, model: EmbeddingModel) -> int:
    """Remove a retired model's index and vectors; return the number of vectors."""
    removed = 0
    for table in VECTORS:
        index_drop(model_id=model.model_id, table=table)
        removed += vectors_delete(table=table, model_id=model.model_id)
    model.cleared_at = timezone.now()
    model.save(update_fields=["cleared_at"])
    logger.info("%d vectors of %s were removed.", removed, model.model_id)
    return removed


def _make_up(retired: EmbeddingModel, embedder: Embedder) -> int:
    """Make the missing vectors of texts that were written with the old model after the switch.

    Their writers had read the model in use before the switch.
    """
    recent = ChatSession.objects.filter(last_active__gte=present(retired.retired_at) - KEEP)
    keys = list(recent.order_by("-last_active").values_list("pk", flat=True))
    made = memories_embed(embedder=embedder, uncovered={})
    return made + sessions_embed(session_ids=keys, embedder=embedder, progress=lambda _: None)


# Allow one process at a time to make, switch or remove the vectors of whole models.


# Any number that nothing else uses.
LOCK = 0x4E3BED


class ReembedRunningError(Exception):
    """Another process is already making, switching or removing vectors."""

    def __init__(self) -> None:
        super().__init__("Another memories_reembed is at work in this database.")


def reembed_lock() -> AbstractContextManager[None]:
    """Return the lock, to hold during a block. Raises ReembedRunningError."""
    return advisory_lock(LOCK, ReembedRunningError())
