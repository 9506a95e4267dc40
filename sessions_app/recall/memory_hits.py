"""Read the memories that a recall found, as hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from memories_app.ranking.facade import Question
from memories_app.search.facade import contents_then
from memoryproject.foundation.compiled_sql import read_by_id, sent_ids
from sessions_app.recall.fact_times import FactTimes
from sessions_app.recall.hit_statements import memory_read
from sessions_app.recall.hits import Hit
from sessions_app.recall.memory_labels import memory_about
from sessions_app.recall.message_ranking import similarities


def read_memories(
    question: Question,
    ids: Sequence[UUID],
    scores: Sequence[float] | None = None,
    *,
    rights: Mapping[str, Any],
    as_of: datetime | None,
) -> Iterator[Hit]:
    """Yield these memories with their scores, as far as the viewer may see them now.

    ``rights``: those of ``memories_visible``. ``as_of``: in their words of then.
    """
    chat_id = rights["chat_id"]
    found = read_by_id(
        memory_read(
            is_owner=rights["is_owner"],
            is_staff=rights["is_staff"],
            in_chat=chat_id is not None,
            as_of=as_of is not None,
        ),
        ids=sent_ids(ids),
        chat_id=chat_id,
        now=as_of or timezone.now(),
        model=question.model,
    )
    near = similarities(question, {key: vector for key, (*_, vector) in found.items()})
    then = {} if as_of is None else contents_then(list(found), as_of)
    for key, score in zip(ids, scores or [0.0] * len(ids), strict=True):
        if key not in found:
            continue
        content, created_at, kind, client, chat, source, *times, newer, _ = found[key]
        about = memory_about(
            kind,
            client=client,
            source=source,
            is_own=chat is not None and chat == chat_id,
            times=FactTimes(*times),
            newer=newer,
        )
        content = then.get(key, content)
        yield Hit("memory", key, content, score, near.get(key), created_at, about)
