"""Gives messages their vectors, off the way of the answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from memoryproject.foundation.integrations.embedders.embed_covered import embed_covered
from sessions_app.models import ChatSession, Message, MessageEmbedding
from sessions_app.models.messages import Role

logger = logging.getLogger(__name__)

# A turn adds two messages; more are left over only where the embedder failed for a while.
LATEST = 50
BATCH = 200
# Over many sessions: as many messages as the embedder sends at once.
MANY = 256
SESSIONS_AT_ONCE = 50


def messages_embed(*, session_id: UUID | None, embedder: Embedder) -> int:
    """Make the vectors that the latest messages of a session still lack; returns how many.

    A failing embedder leaves them for the next time: recall then finds them by their words.
    No session (memory is off): nothing to do.
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
    """Make the vectors that any message of a session lacks, newest first; returns how many.
    Raises EmbedderError; what was made until then stays."""
    lacking = messages_lacking(Message.objects.filter(session_id=session_id), embedder.model_id)
    batch = list(lacking.order_by("-order_num")[:BATCH])
    made = 0
    while batch:
        made += _embed(batch, embedder)
        older = lacking.filter(order_num__lt=batch[-1].order_num)
        batch = list(older.order_by("-order_num")[:BATCH])
    return made


def sessions_embed(
    *, session_ids: Sequence[UUID], embedder: Embedder, progress: Callable[[int], object]
) -> int:
    """Make the vectors that the messages of these sessions lack, in the sessions' order and the
    newest message first; returns how many.

    progress: told after each batch how many messages it had. Raises EmbedderError; what was
    made until then stays.
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
    """Those that recall could find by a vector of this model and that have none. Messages that
    the model doesn't cover never have one."""
    said = messages.filter(role__in=[Role.USER, Role.ASSISTANT]).exclude(content="")
    return said.exclude(embeddings__model=model_id).defer("terms")


def _embed(lacking: list[Message], embedder: Embedder) -> int:
    """Make and store vectors; returns how many. Raises EmbedderError."""
    vectors = embed_covered(embedder, [message.content for message in lacking])
    made = {
        message.pk: (message.content, vector)
        for message, vector in zip(lacking, vectors, strict=True)
        if vector is not None
    }
    with transaction.atomic():
        # In one order, or two workers at the same session's messages would deadlock.
        same = Message.objects.select_for_update(no_key=True).filter(pk__in=made)
        rows = [
            MessageEmbedding(message=message, model=embedder.model_id, vector=made[message.pk][1])
            for message in same.order_by("order_num", "pk")
            # Edited or revoked meanwhile: the vector is one of a text that is gone.
            if message.content == made[message.pk][0]
        ]
        MessageEmbedding.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
