"""Make the vectors of messages in the background, so that answers don't wait for them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet, Subquery, Value
from django.utils import timezone
from pgvector import Vector
from psycopg.types.json import Jsonb

from memoryproject.foundation.integrations.embedders import base as embedders
from sessions_app.models import ChatSession, Message, MessageEmbedding, Role
from sessions_app.models.sessions import VECTORS_LOST_AFTER

logger = logging.getLogger(__name__)

# A turn adds two messages; more are left only if the embedder failed for a while.
LATEST = 50
# Ten seconds of the default embedder.
BATCH = 200
# Across sessions: as many messages as the embedder sends at once.
MANY = 256
SESSIONS_AT_ONCE = 50
MAX_SWEPT = 1_000
# A text that was edited or revoked meanwhile gets no vector: it would belong to a text that no
# longer exists. Locked in one order: otherwise two workers at a session's messages would deadlock.
STORE = f"""
INSERT INTO {MessageEmbedding._meta.db_table} (message_id, model, vector)
SELECT message_id, %s, vector
FROM jsonb_to_recordset(%s) AS made (id uuid, content text, vector vector)
JOIN {Message._meta.db_table} message ON message_id = id AND message.content = made.content
ORDER BY order_num, message_id FOR NO KEY UPDATE OF message
ON CONFLICT DO NOTHING
"""  # noqa: S608 constants only


def messages_embed(*, session_id: UUID, embedder: embedders.Embedder) -> int:
    """Make the missing vectors of a session's latest messages; return how many.

    If the embedder fails, the messages wait for the next run, and recall finds them by their
    words.
    """
    counter = ChatSession.objects.filter(pk=session_id).values("message_counter")
    latest = Message.objects.filter(
        session_id=session_id, order_num__gt=Subquery(counter) - Value(LATEST)
    )
    lacking = messages_lacking(latest, embedder.model_id).order_by("order_num")
    try:
        return _embed(dict(lacking.values_list("pk", "content")), embedder)
    except embedders.EmbedderError as error:
        logger.warning("Messages have no vectors yet: %s", error)
        return 0


def session_embed(
    *,
    session_id: UUID,
    embedder: embedders.Embedder,
    go_on: Callable[[UUID, int], object] = lambda _session_id, _before: None,
    before: int | None = None,
) -> int:
    """Make the missing vectors of a batch of a session's messages; return how many.

    Newest first. go_on: called with the session and the order number of the last message where
    there may be more: the next batch is ``before`` it. Other jobs get their turn between batches.

    Raises EmbedderError; the request for vectors stays then, and the sweep enqueues it again.
    """
    sessions = ChatSession.objects.filter(pk=session_id)
    # Before the messages are read: one that is stored from now on requests vectors again.
    sessions.filter(vectors_requested_at__isnull=False).update(vectors_requested_at=None)
    lacking = messages_lacking(Message.objects.filter(session_id=session_id), embedder.model_id)
    if before is not None:
        lacking = lacking.filter(order_num__lt=before)
    newest = lacking.order_by("-order_num").values_list("pk", "content", "order_num")
    batch = list(newest[: BATCH + 1])
    more, batch = batch[BATCH:], batch[:BATCH]
    requested = sessions.filter(vectors_requested_at__isnull=True)
    try:
        made = _embed({key: content for key, content, _ in batch}, embedder)
    except embedders.EmbedderError:
        requested.update(vectors_requested_at=timezone.now())
        raise
    if more:
        requested.update(vectors_requested_at=timezone.now())
        go_on(session_id, batch[-1][2])
    return made


def messages_waiting(model_id: str) -> int:
    """Return how many messages wait for a vector."""
    waiting = Message.objects.filter(session__vectors_requested_at__isnull=False)
    return messages_lacking(waiting, model_id).count()


def vectors_abandoned(now: datetime) -> list[UUID]:
    """Return the sessions whose job was lost; it counts as enqueued again now.

    So it is after a failed job: its messages still wait.
    """
    lost = ChatSession.objects.filter(vectors_requested_at__lte=now - VECTORS_LOST_AFTER)
    keys = list(lost.values_list("pk", flat=True)[:MAX_SWEPT])
    if keys:
        lost.filter(pk__in=keys).update(vectors_requested_at=now)
    return keys


def sessions_embed(
    *, session_ids: Sequence[UUID], embedder: embedders.Embedder, progress: Callable[[int], object]
) -> int:
    """Make the missing vectors of the messages of these sessions; return how many.

    In the sessions' order, newest message first.

    progress: called after each batch with its number of messages. Raises EmbedderError; the
    vectors made until then stay.
    """
    made = 0
    for start in range(0, len(session_ids), SESSIONS_AT_ONCE):
        some = Message.objects.filter(session_id__in=session_ids[start : start + SESSIONS_AT_ONCE])
        newest_first = messages_lacking(some, embedder.model_id).order_by("-order_num", "pk")
        keys = list(newest_first.values_list("pk", flat=True))
        for first in range(0, len(keys), MANY):
            batch = Message.objects.filter(pk__in=keys[first : first + MANY])
            made += _embed(dict(batch.values_list("pk", "content")), embedder)
            progress(len(keys[first : first + MANY]))
    return made


def messages_lacking(messages: QuerySet[Message], model_id: str) -> QuerySet[Message]:
    """Return the messages that lack a vector of this model and could be recalled by one.

    Messages that the model doesn't cover never have one.
    """
    with_text = messages.filter(role__in=[Role.USER, Role.ASSISTANT]).exclude(content="")
    return with_text.exclude(embeddings__model=model_id).defer("terms")


def _embed(lacking: Mapping[UUID, str], embedder: embedders.Embedder) -> int:
    """Make and store vectors of these messages; returns how many. Raises EmbedderError."""
    vectors = embedders.embed_covered(embedder, list(lacking.values()))
    made = [
        {"id": str(key), "content": content, "vector": Vector(vector).to_text()}
        for (key, content), vector in zip(lacking.items(), vectors, strict=True)
        if vector is not None
    ]
    if not made:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(STORE, [embedder.model_id, Jsonb(made)])
        return cursor.rowcount
