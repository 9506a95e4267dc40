"""Make all vectors with another embedding model and switch to it without downtime.

The old model stays in use until every memory and message has its new vector and the new index
exists. The switch is one transaction. Recall reads one model's vectors only. The old vectors
stay until no process that began before the switch can be using them.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import OperationalError, connection, transaction
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from memories_app.embedding_models import vectors
from memories_app.models import EmbeddingModel, EmbeddingState, Memory
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.embedding.maintenance import indexes_ensure, reembed_lock
from sessions_app.embedding.message_vectors import messages_lacking, sessions_embed
from sessions_app.models import ChatSession, Message

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
            + messages_lacking(Message.objects.all(), model_id).count()
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
        self._done.messages += sessions_embed(
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
