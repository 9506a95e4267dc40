"""Maintain the embeddings on a schedule.

Makes the index of the model in use, and removes the vectors of a retired model once no process
can be using them.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import OperationalError, connection, transaction
from django.db.models import Model
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from memories_app.embedding_models import vectors
from memories_app.embedding_models.vectors import memories_embed, vectors_delete, vectors_waiting
from memories_app.models import EmbeddingModel, EmbeddingState, Memory, MemoryEmbedding
from memories_app.vector_search import index_drop, index_ensure
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.leases import advisory_lock
from memoryproject.foundation.process.narrowing import present
from sessions_app.embedding import message_vectors
from sessions_app.models import ChatSession, Message, MessageEmbedding

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
    return vectors_waiting() + message_vectors.messages_waiting(active.model_id) if active else 0


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
    return made + message_vectors.sessions_embed(
        session_ids=keys, embedder=embedder, progress=lambda _: None
    )


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


# Make all vectors with another embedding model and switch to it without downtime.

logger = logging.getLogger(__name__)

# Memories keep arriving: limit of rounds that embed the memories added during the previous round.
MAX_LOOKS = 20
# Limit of memories that may lack a vector for a moment at the switch; their words find them.
FEW = 100
LOCK_TIMEOUT = "5s"
# A session whose message was written before the start may be stored a little later.
MARGIN = timedelta(minutes=1)

Progress = Callable[[int, int], object]


class TooBusyError(Exception):
    """Memories arrive faster than their vectors can be made."""


@dataclass(frozen=True)
class Target:
    """The embedder of the model to switch to.

    kind, name: the values of EMBEDDER and EMBEDDING_MODEL for it.
    """

    embedder: Embedder
    kind: str
    name: str


@dataclass
class Reembedded:
    """The result of a run.

    ``before``: the replaced model, None if the model was in use already and only lacked
    vectors.
    """

    model: str
    before: str | None = None
    memories: int = 0
    messages: int = 0
    index_made: bool = False


def reembed(*, target: Target, progress: Progress) -> Reembedded:
    """Make the missing vectors of the target's model, and switch recall to it.

    Can be killed at any point and run again: finished vectors stay, and the switch happens only
    when all exist. Raises ReembedRunningError, WrongDimensionsError, EmbedderError,
    TooBusyError.
    """
    with reembed_lock():
        started = timezone.now()
        model = vectors.model_begin(embedder=target.embedder, kind=target.kind, name=target.name)
        done = Reembedded(model=model.model_id)
        work = _Work(target.embedder, done, progress)
        work.count()
        work.memories()
        work.messages()
        done.index_made = bool(indexes_ensure(model))
        if model.state == str(EmbeddingState.ACTIVE):
            return done
        # Embed the messages that arrived meanwhile; then only the last moment is left.
        work.messages(since=started)
        before = _switch_when_whole(work, model)
        done.before = before.model_id if before else None
        # A process that read the old model just before the switch may have used it just after.
        work.memories()
        work.messages(since=started)
        logger.info("Recall uses the embedding model %s now.", model.model_id)
        return done


class _Work:
    """The vectors of one run, and its progress."""

    def __init__(self, embedder: Embedder, done: Reembedded, progress: Progress) -> None:
        self.uncovered: vectors.Uncovered = {}
        self._embedder = embedder
        self._done = done
        self._progress = progress
        self._seen = self._total = 0

    def count(self) -> None:
        model_id = self._embedder.model_id
        self._total = (
            vectors.memories_lacking(model_id).count()
            + message_vectors.messages_lacking(Message.objects.all(), model_id).count()
        )

    def memories(self) -> None:
        self._done.memories += vectors.memories_embed(
            embedder=self._embedder, uncovered=self.uncovered, progress=self._saw
        )

    def messages(self, since: datetime | None = None) -> None:
        """Embed messages, the newest conversations first.

        since: only sessions active since then.
        """
        sessions = ChatSession.objects.order_by("-last_active", "pk")
        if since is not None:
            sessions = sessions.filter(last_active__gte=since - MARGIN)
        keys = list(sessions.values_list("pk", flat=True))
        self._done.messages += message_vectors.sessions_embed(
            session_ids=keys, embedder=self._embedder, progress=self._saw
        )

    def _saw(self, count: int) -> None:
        self._seen = min(self._seen + count, self._total)
        self._progress(self._seen, self._total)


def _switch_when_whole(work: _Work, model: EmbeddingModel) -> EmbeddingModel | None:
    """Embed new memories until none lacks its vector, then switch; return the model before."""
    for look in range(1, MAX_LOOKS + 1):
        work.memories()
        try:
            with transaction.atomic():
                _hold_writers()
                left = vectors.memories_untried(model_id=model.model_id, uncovered=work.uncovered)
                if left == 0 or (look == MAX_LOOKS and left <= FEW):
                    return _switch(model)
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
    raise TooBusyError(
        "Memories are being written without a pause, so the switch was put off. All that was made "
        "stays: run memories_reembed again."
    )


def _hold_writers() -> None:
    """Block writes to memories until the transaction ends; searches continue."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        cursor.execute(f"LOCK TABLE {Memory._meta.db_table} IN SHARE MODE")


def _switch(model: EmbeddingModel) -> EmbeddingModel | None:
    before = vectors.model_switch(model=model)
    audit_record(
        "setting.change",
        COMMAND_LINE,
        "embedding_model",
        model.model_id,
        before=before.model_id if before else None,
    )
    return before
