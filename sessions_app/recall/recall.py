"""Recall the memories and the messages of the same chat that answer a question.

The turn, the API, the admin and the commands share one function.
"""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q

from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.process.tracing import memory_span, note_records
from sessions_app.recall.hits import MEMORIES, MESSAGES, LeftOut, MessageHit, RecallResult, Viewer


@memory_span("search_memory")
def recall(
    *,
    query: str,
    viewer: Viewer,
    embedder: Embedder,
    top_k: int = 5,
    min_similarity: float = 0.7,
    nearest: int = 0,
    sources: Collection[str] = (MEMORIES, MESSAGES),
    messages_where: Q | None = None,
    left_out: LeftOut | None = None,
    memories_where: Q | None = None,
    repeats: bool = False,
    with_ended: bool = False,
    as_of: datetime | None = None,
) -> RecallResult:
    """Return the best ``top_k`` texts for the query with a score of ``min_similarity`` or more.

    nearest: where there are fewer than so many, the next best texts are returned, too, down to a
    score of NEAREST_SIMILARITY. Their metadata says that they are only the NEAREST.
    messages_where, memories_where: what is searched. left_out: what a prompt doesn't hold.
    repeats: True also returns texts that say nothing new: questions like the query that were asked
    before, further copies of a text, and facts that have ended, which are else returned only where
    nothing else is known. with_ended: True also returns such facts, but nothing else of these.
    as_of: return what was believed then: what had been said by then, in its words of then, and not
    been replaced.
    If the embedder fails, the search uses words only. A failing database query is retried once
    and then gives an empty result (ERR-MEMORY-003). Both set ``degraded``.
    """
    from sessions_app.recall.recall_steps import Search  # noqa: PLC0415 numpy is slow

    if as_of is not None:
        messages_where = (messages_where or Q()) & Q(timestamp__lte=as_of)
    found = Search(
        query=query,
        viewer=viewer,
        embedder=embedder,
        top_k=top_k,
        min_similarity=min_similarity,
        nearest=nearest,
        sources=sources,
        messages_where=messages_where,
        left_out=left_out,
        memories_where=memories_where,
        repeats=repeats,
        with_ended=with_ended or repeats,
        as_of=as_of,
    ).run()
    note_records(len(found.hits))
    return found


@memory_span("search_memory")
def messages_found(
    *, query: str, within: Q, embedder: Embedder, by: str, min_similarity: float
) -> tuple[list[MessageHit], bool]:
    """Return the messages with at least this score, best first, and whether a part was missing.

    within: the messages that are searched. by: one of WAYS. At most some hundreds are returned:
    those that hold most of the words, and those that are nearest.
    """
    from sessions_app.recall.message_search import search  # noqa: PLC0415 numpy is slow

    hits, degraded = search(query, within, embedder, by=by, least=min_similarity)
    note_records(len(hits))
    return hits, degraded
