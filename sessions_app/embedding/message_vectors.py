"""Make the vectors of messages in the background, so that answers don't wait for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from sessions_app.models import ChatSession, Message, MessageEmbedding
from sessions_app.models.messages import Role
from sessions_app.models.sessions import VECTORS_LOST_AFTER

logger = logging.getLogger(__name__)

# A turn adds two messages; more are left only if the embedder failed for a while.
LATEST = 50
BATCH = 200
# Across sessions: as many messages as the embedder sends at once.
MANY = 256
SESSIONS_AT_ONCE = 50
MAX_SWEPT = 1_000


def messages_embed(*, session_id: UUID | None, embedder: Embedder) -> int:
    """Make the missing vectors of a session's latest messages; return how many.

    If the embedder fails, the messages wait for the next run, and recall finds them by their
    words. Without a session (memory is off) there is nothing to do.
    """
    session = ChatSession.objects.filter(pk=session_id).first()
    if session is None:
        return 0
    latest = session.messages.filter(order_num__gt=session.message_counter - LATEST)
    try:
        return _embed(list(messages_lacking(latest, embedder.model_id)), embedder)
    except EmbedderError as error:
        logger.warning("Messages have no vectors yet: %s", error)
        return 0


def session_embed(*, session_id: UUID, embedder: Embedder) -> int:
    """Make the missing vectors of all messages of a session; return how many.

    Newest first. Raises EmbedderError; the vectors made until then stay.
    """
    # Before the messages are read: one that is stored from now on requests vectors again.
    requested = ChatSession.objects.filter(pk=session_id, vectors_requested_at__isnull=False)
    requested.update(vectors_requested_at=None)
    lacking = messages_lacking(Message.objects.filter(session_id=session_id), embedder.model_id)
    batch = list(lacking.order_by("-order_num")[:BATCH])
    made = 0
    while batch:
        made += _embed(batch, embedder)
        older = lacking.filter(order_num__lt=batch[-1].order_num)
        batch = list(older.order_by("-order_num")[:BATCH])
    return made


def vectors_abandoned(now: datetime) -> list[UUID]:
    """Return the sessions whose job was lost; it counts as enqueued again now.

    A failed job isn't lost: the next message of the session requests its vectors, too.
    """
    lost = ChatSession.objects.filter(vectors_requested_at__lte=now - VECTORS_LOST_AFTER)
    keys = list(lost.values_list("pk", flat=True)[:MAX_SWEPT])
    if keys:
        lost.filter(pk__in=keys).update(vectors_requested_at=now)
    return keys


def sessions_embed(
    *, session_ids: Sequence[UUID], embedder: Embedder, progress: Callable[[int], object]
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
            batch = Message.objects.filter(pk__in=keys[first : first + MANY]).defer("terms")
            made += _embed(list(batch), embedder)
            progress(len(keys[first : first + MANY]))
    return made


def messages_lacking(messages: QuerySet[Message], model_id: str) -> QuerySet[Message]:
    """Return the messages that lack a vector of this model and could be recalled by one.

    Messages that the model doesn't cover never have one.
    """
    with_text = messages.filter(role__in=[Role.USER, Role.ASSISTANT]).exclude(content="")
    return with_text.exclude(embeddings__model=model_id).defer("terms")


def _embed(lacking: list[Message], embedder: Embedder) -> int:
    """Make and store vectors; returns how many. Raises EmbedderError."""
    vectors = embed_covered(embedder, [message.content for message in lacking])
    made = {
        message.pk: (message.content, vector)
        for message, vector in zip(lacking, vectors, strict=True)
        if vector is not None
    }
    with transaction.atomic():
        # Use one order: otherwise two workers at the same session's messages would deadlock.
        same = Message.objects.select_for_update(no_key=True).filter(pk__in=made)
        rows = [
            MessageEmbedding(message=message, model=embedder.model_id, vector=made[message.pk][1])
            for message in same.order_by("order_num", "pk")
            # Edited or revoked meanwhile: the vector belongs to a text that no longer exists.
            if message.content == made[message.pk][0]
        ]
        MessageEmbedding.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
