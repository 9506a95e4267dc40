"""Recall the memories and the messages of the same chat that answer a question.

The turn, the API, the admin and the commands share one function. Visibility is decided in SQL,
in the two querysets that this module ranks, and nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memories_app.models import MemoryEmbedding
from memories_app.search.facade import (
    NOTHING_FOUND,
    Question,
    WordSearch,
    any_of,
    memories_visible,
    prepare_query,
    rank,
    search_words,
)
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.subqueries import QueryPart, query_parts
from sessions_app.models import Message
from sessions_app.models.messages import Role
from sessions_app.models.roles import GODFATHER
from sessions_app.recall.neighbours import neighbours_of

if TYPE_CHECKING:
    from memoryproject.foundation.retrieval.message_features import DistinctTexts
    from sessions_app.recall.message_ranking import MessageQuestion

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

MEMORIES = "memories"
MESSAGES = "messages"


@dataclass(frozen=True)
class Viewer:
    """The viewer of a recall.

    ``chat_id`` None and role "staff": all memories, no messages.
    """

    user_role: str
    chat_id: UUID | None = None


@dataclass(frozen=True)
class Hit:
    """A recalled text.

    ``similarity`` is the raw cosine, None if the embedder doesn't cover the text. ``score`` is
    the fused relevance in [0, 1]. A message's metadata holds its position and, shortened, the
    messages "before" and "after" it.
    """

    source: str
    id: UUID
    content: str
    score: float
    similarity: float | None
    created_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the hit for the replay record."""
        return {
            "source": self.source,
            "id": str(self.id),
            "content": self.content,
            "score": round(self.score, 4),
            "similarity": None if self.similarity is None else round(self.similarity, 4),
            "created_at": self.created_at.isoformat(),
            **self.metadata,
        }


@dataclass(frozen=True)
class RecallResult:
    """The hits, best first. ``degraded``: a part of memory could not be searched."""

    hits: list[Hit]
    degraded: bool = False


def recall(
    *,
    query: str,
    viewer: Viewer,
    embedder: Embedder,
    top_k: int = 5,
    min_similarity: float = 0.7,
    sources: Collection[str] = (MEMORIES, MESSAGES),
    messages_where: Q | None = None,
    memories_where: Q | None = None,
    sure: bool = True,
    repeats: bool = False,
) -> RecallResult:
    """Return the best ``top_k`` texts for the query with a score of ``min_similarity`` or more.

    messages_where: filters the past messages, such as those that a prompt already holds.
    memories_where: filters the memories that the viewer may see.
    sure: False if a quick answer matters more than memories that are far from the question in
    meaning and share no word with it.
    repeats: True also returns texts that say nothing new: questions like the query that were asked
    before, and further copies of a text.
    If the embedder fails, the search uses words only. A failing database query is retried once
    and then gives an empty result (ERR-MEMORY-003). Both set ``degraded``.
    """
    from memoryproject.foundation.retrieval.message_features import DistinctTexts  # noqa: PLC0415 numpy is slow
    from sessions_app.recall.message_ranking import MessageQuestion  # noqa: PLC0415 numpy is slow

    subqueries = query_parts(query)
    messages = messages_visible(viewer, messages_where)
    found_messages = None
    failed = False
    if MESSAGES in sources and viewer.chat_id is not None:
        found_messages = _try_twice(
            lambda: _search_messages(subqueries, messages, None if repeats else query)
        )
        failed = found_messages is None
    topics = _topics(subqueries, found_messages)
    question, topic_vectors, embedded = prepare_query(subqueries, embedder, topics=topics)
    searches: list[Callable[[], list[Hit]]] = []
    if MEMORIES in sources:
        searches.append(lambda: _recall_memories(question, viewer, top_k, memories_where, sure))
    if topics and found_messages:
        message_question = MessageQuestion(
            question, topic_vectors, found_messages, timezone.now().date()
        )
        searches.append(
            lambda: _recall_messages(
                message_question, messages, top_k, None if repeats else DistinctTexts(query)
            )
        )
    found = [_try_twice(search) for search in searches]
    hits = [hit for part in found for hit in part or []]
    best = sorted(hits, key=lambda hit: (-hit.score, hit.created_at))
    relevant = [hit for hit in best if hit.score >= min_similarity]
    relevant = (relevant if repeats else _distinct(relevant))[:top_k]
    complete: list[Hit] | None = relevant
    if any(hit.source == "message" for hit in relevant):
        complete = _try_twice(lambda: _with_neighbours(relevant, messages))
    logger.debug("Recalled %d of %d candidates.", len(relevant), len(hits))
    degraded = failed or not embedded or None in [*found, complete]
    return RecallResult(relevant if complete is None else complete, degraded)


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without copies of memories, and without messages that are such copies."""
    from memoryproject.foundation.retrieval.message_features import DistinctTexts  # noqa: PLC0415 numpy is slow

    memories = DistinctTexts()
    new = {hit.id for hit in hits if hit.source == "memory" and memories.is_new(hit.content)}
    return [hit for hit in hits if hit.id in new or not memories.holds(hit.content)]


def _topics(subqueries: Sequence[QueryPart], found: WordSearch | None) -> list[str]:
    from sessions_app.recall.message_ranking import topics_of  # noqa: PLC0415 numpy is slow

    return topics_of(subqueries, found) if found and found.texts else []


def _search_messages(
    subqueries: Sequence[QueryPart], messages: QuerySet[Message], query: str | None
) -> WordSearch:
    """Search the messages. Those that repeat the ``query`` don't make its words frequent."""

    def repeats(keys: Sequence[UUID]) -> int:
        from memoryproject.foundation.retrieval.message_features import DistinctTexts  # noqa: PLC0415 numpy is slow

        distinct = DistinctTexts(query or "")
        # Longer texts say something else, too, and aren't read.
        short = messages.filter(pk__in=any_of(keys), term_count__lte=most)
        return sum(map(distinct.repeats_query, short.values_list("content", flat=True)))

    most = 3 * len(subqueries[0].terms) + 3
    try:
        return search_words(subqueries, messages, repeats=None if query is None else repeats)
    except EmptyResultSet:
        # A filter that nothing can pass.
        return NOTHING_FOUND


def _try_twice(search: Callable[[], Found]) -> Found | None:
    """Return the result of the search; None if it failed twice."""
    for attempt in (1, 2):
        try:
            with transaction.atomic():
                return search()
        except DatabaseError:
            logger.exception("Recall failed (try %d of 2).", attempt)
    return None


def _recall_memories(
    question: Question, viewer: Viewer, top_k: int, where: Q | None, sure: bool
) -> list[Hit]:
    visible = memories_visible(
        is_owner=viewer.user_role == GODFATHER,
        is_staff=viewer.user_role == "staff",
        chat_id=viewer.chat_id,
    ).filter(where or Q())
    ranked = rank(question, visible, MemoryEmbedding, key="memory", top_k=top_k, sure=sure)
    # Filter by visibility again: a memory may have become private since it was ranked.
    read = visible.only("content", "created_at", "type")
    found = read.in_bulk([item.key for item in ranked])
    return [
        Hit(
            source="memory",
            id=item.key,
            content=found[item.key].content,
            score=item.score,
            similarity=item.similarity,
            created_at=found[item.key].created_at,
            metadata={"type": found[item.key].type},
        )
        for item in ranked
        if item.key in found
    ]


def messages_visible(viewer: Viewer, where: Q | None = None) -> QuerySet[Message]:
    """Return the messages of the viewer's chat that may be recalled."""
    messages = Message.objects.filter(chat_id=viewer.chat_id, revoked_at__isnull=True)
    messages = messages.filter(role__in=[Role.USER, Role.ASSISTANT]).exclude(content="")
    # Commands and system texts ("Remembered: …", apologies) are no knowledge.
    messages = messages.exclude(metadata__has_any_keys=["command", "system_text"])
    return messages if where is None else messages.filter(where)


def _recall_messages(
    message_question: MessageQuestion,
    messages: QuerySet[Message],
    top_k: int,
    distinct: DistinctTexts | None,
) -> list[Hit]:
    from sessions_app.recall.message_ranking import rank_messages  # noqa: PLC0415 numpy is slow

    # Some of them may be copies of memories.
    most = top_k if distinct is None else 2 * top_k
    ranked = rank_messages(message_question, messages, top_k=most, distinct=distinct)
    # As above: a message may have been revoked since it was ranked.
    read = messages.only("content", "timestamp", "role", "session_id", "order_num")
    found = read.in_bulk([item.key for item in ranked])
    return [
        Hit(
            source="message",
            id=item.key,
            content=found[item.key].content,
            score=item.score,
            similarity=item.similarity,
            created_at=found[item.key].timestamp,
            metadata={
                "role": found[item.key].role,
                "session_id": str(found[item.key].session_id),
                "order_num": found[item.key].order_num,
            },
        )
        for item in ranked
        if item.key in found
    ]


def _with_neighbours(hits: Sequence[Hit], messages: QuerySet[Message]) -> list[Hit]:
    """Return the hits; those of messages with their neighbours."""
    around = neighbours_of([hit.id for hit in hits if hit.source == "message"], messages=messages)
    return [
        replace(hit, metadata={**hit.metadata, **around[hit.id].as_dict()})
        if hit.id in around
        else hit
        for hit in hits
    ]
