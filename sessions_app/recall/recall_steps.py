"""Search memories and messages for one recall: what is found in memory is read from the database.

Visibility is decided there, in two querysets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from django.db import DatabaseError, connection, transaction
from django.db.models import (
    Aggregate,
    BinaryField,
    FloatField,
    Func,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.fields.json import KT
from django.utils import timezone
from pgvector.django import CosineDistance

from memories_app.models import MemoryEmbedding
from memories_app.ranking.facade import (
    SCOPES,
    Columns,
    HeldScope,
    HeldTexts,
    Question,
    StoredTexts,
    prepare_query,
    rank,
    search_words,
    with_ids,
)
from memories_app.search.facade import memories_of_scope, memories_visible, scopes_visible
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.message_features import DistinctTexts
from memoryproject.foundation.retrieval.subqueries import QueryPart, query_parts
from memoryproject.foundation.retrieval.text_index import Mask, Rows, TextIndex
from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.foundation.text.tokenizer import Kind
from sessions_app.models import Message, MessageEmbedding
from sessions_app.models.messages import ASKING
from sessions_app.models.roles import GODFATHER
from sessions_app.recall.conversation_lines import (
    LINES,
    left_out_mask,
    messages_visible,
    neighbours_of,
)
from sessions_app.recall.hits import (
    MAX_NEIGHBOUR_LENGTH,
    MEMORIES,
    MESSAGES,
    Hit,
    LeftOut,
    RecallResult,
    Viewer,
)
from sessions_app.recall.message_ranking import (
    MessageQuestion,
    RankedLines,
    lacking,
    rank_messages,
    topics_of,
)

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

# A larger scope of memories is searched in the database.
MAX_HELD_MEMORIES = 200_000
# Lines that hold nearly all words of the question are compared with it, the shortest ones.
MAX_COMPARED = 300
# Commands and the like may stand between two messages; beyond this distance they are no
# neighbours.
REACH = 6


@dataclass(frozen=True)
class Search:
    """The arguments of ``recall``."""

    query: str
    viewer: Viewer
    embedder: Embedder
    top_k: int
    min_similarity: float
    sources: Collection[str]
    messages_where: Q | None
    left_out: LeftOut | None
    memories_where: Q | None
    sure: bool
    repeats: bool

    def run(self) -> RecallResult:
        subqueries = query_parts(self.query)
        opened = _try_twice(self._open)
        if opened is None:
            return RecallResult([], degraded=True)
        messages, lines = opened.messages, None
        if messages is not None and len(messages):
            lines = _try_twice(lambda: _Lines(self, messages, subqueries))
        failed = bool(messages) and lines is None
        topics = topics_of(subqueries, lines.found) if lines and lines.found.texts else []
        question, topic_vectors, embedded = prepare_query(subqueries, self.embedder, topics=topics)
        searches: list[Callable[[], list[Hit]]] = []
        if MEMORIES in self.sources:
            searches.append(lambda: self._memories(question, opened.memories))
        if lines and topics:
            searches.append(lambda: lines.hits(question, topic_vectors))
        found = [_try_twice(search) for search in searches]
        hits = [hit for part in found for hit in part or []]
        best = sorted(hits, key=lambda hit: (-hit.score, hit.created_at))
        relevant = [hit for hit in best if hit.score >= self.min_similarity]
        relevant = (relevant if self.repeats else _distinct(relevant))[: self.top_k]
        complete: list[Hit] | None = relevant
        if lines and any(hit.source == "message" for hit in relevant):
            complete = _try_twice(lambda: lines.with_neighbours(relevant))
        logger.debug("Recalled %d of %d candidates.", len(relevant), len(hits))
        degraded = failed or not embedded or None in [*found, complete]
        return RecallResult(relevant if complete is None else complete, degraded)

    def _open(self) -> _Opened:
        """Bring what is held of the searched scopes up to date."""
        model = self.embedder.model_id
        scopes = []
        if MEMORIES in self.sources:
            scopes += [
                HeldScope(name, partial(memories_of_scope, name), model, EXPIRY, MAX_HELD_MEMORIES)
                for name in scopes_visible(**self._rights())
            ]
        memories = len(scopes)
        chat_id = self.viewer.chat_id
        if MESSAGES in self.sources and chat_id is not None:
            visible = partial(messages_visible, chat_id)
            scopes.append(HeldScope(f"messages:{chat_id}", visible, model, LINES))
        found = SCOPES.open(scopes)
        return _Opened(found[:memories], found[memories] if memories < len(found) else None)

    def _rights(self) -> dict[str, Any]:
        return {
            "is_owner": self.viewer.user_role == GODFATHER,
            "is_staff": self.viewer.user_role == "staff",
            "chat_id": self.viewer.chat_id,
        }

    def _memories(self, question: Question, held: Sequence[TextIndex | None]) -> list[Hit]:
        visible = memories_visible(**self._rights())
        if self.memories_where:
            visible = visible.filter(self.memories_where)
        parts = [part.segments for part in held if part is not None]
        if len(parts) < len(held):
            near = question.calibration.midpoint
            stored = StoredTexts(visible, model=question.model, near=near, sure=self.sure)
            ranked = with_ids(rank(question, stored, top_k=self.top_k), stored)
        else:
            index = TextIndex([segment for part in parts for segment in part])
            mask = _current(index)
            if self.memories_where:
                chosen = _mask_of(index, visible)
                mask = chosen if mask is None else mask & chosen
            texts = HeldTexts(index, mask=mask)
            ranked = with_ids(rank(question, texts, top_k=self.top_k), texts)
        ranked = [item for item in ranked if item.score >= self.min_similarity]
        if not ranked:
            return []
        # Filter by visibility again: a memory may have become private since it was ranked.
        rows = visible.filter(pk__in=[item.key for item in ranked])
        near = _similarity(MemoryEmbedding, "memory", question)
        found = {
            row[0]: row for row in rows.values_list("pk", "content", "created_at", "type", near)
        }
        return [
            Hit(
                source="memory",
                id=item.key,
                content=found[item.key][1],
                score=item.score,
                similarity=found[item.key][4],
                created_at=found[item.key][2],
                metadata={"type": found[item.key][3]},
            )
            for item in ranked
            if item.key in found
        ]


@dataclass(frozen=True)
class _Opened:
    """What is held: of each scope of memories (None if it is too large), and of the messages."""

    memories: Sequence[TextIndex | None]
    messages: TextIndex | None


class _Lines:
    """The messages of a chat, searched for one question."""

    def __init__(self, search: Search, index: TextIndex, subqueries: Sequence[QueryPart]) -> None:
        self._search = search
        self._index = index
        self._words = [
            [form for form, _ in term.alternatives]
            for term in subqueries[0].terms
            if term.kind is not Kind.SOUGHT
        ]
        self._longest = 3 * len(subqueries[0].terms) + 3
        self._distinct = DistinctTexts("" if search.repeats else search.query)
        # By the hash of a text: whether it only repeats the query.
        self._compared: dict[int, bool] = {}
        self._messages = messages_visible(search.viewer.chat_id)
        mask = None
        if search.left_out is not None:
            self._messages = self._messages.filter(_condition(search.left_out))
            mask = left_out_mask(index, search.left_out)
        if search.messages_where:
            self._messages = self._messages.filter(search.messages_where)
            chosen = _mask_of(index, self._messages)
            mask = chosen if mask is None else mask & chosen
        repeats = None if search.repeats else self._repeating
        self._texts = HeldTexts(index, mask=mask, repeats=repeats)
        self.found = search_words(subqueries, self._texts)

    def _repeating(self, rows: Rows) -> Rows:
        """Return which of these lines only repeat the query.

        Only lines that ask for something and hold nearly all of its words, and hardly others, are
        read for that.
        """
        if not len(rows):
            return rows
        rows = rows[self._index.lengths[rows] <= self._longest]
        asking = self._texts.counted(rows, [ASKING]).counts[:, 0] > 0
        rows = rows[asking]
        few = lacking(self._texts, rows, self._words) <= self._distinct.most_lacking
        rows = rows[few]
        hashes = self._index.columns_of(rows)["text"]
        texts, first = np.unique(hashes, return_index=True)
        unknown = [place for place in first.tolist() if int(hashes[place]) not in self._compared]
        unknown = unknown[:MAX_COMPARED]
        if unknown:
            ids = self._texts.ids(rows[unknown])
            read = dict(Message.objects.filter(pk__in=ids).values_list("pk", "content"))
            for place, key in zip(unknown, ids, strict=True):
                repeated = self._distinct.repeats_query(read.get(key, ""))
                self._compared[int(hashes[place])] = repeated
        asked_before = [text for text in texts.tolist() if self._compared.get(text)]
        return rows[np.isin(hashes, np.array(asked_before, np.int64))]

    def hits(self, question: Question, topics: Sequence[Sequence[float] | None]) -> list[Hit]:
        """Return the lines that answer best, best first."""
        search = self._search
        message_question = MessageQuestion(question, topics, self.found, timezone.now().date())
        lines = rank_messages(message_question, self._texts)
        if search.repeats:
            order = self._texts.ordered(lines.rows, lines.scores, search.top_k)
            chosen = [(int(lines.rows[place]), float(lines.scores[place])) for place in order]
            return list(islice(self._read(chosen, question), search.top_k))
        # Some of them may be copies of memories.
        return list(islice(self._new(self._originals(lines), question), 2 * search.top_k))

    def _originals(self, lines: RankedLines) -> Iterator[tuple[int, float]]:
        """Return the lines, best first, with their scores, but not those that repeat the query.

        The last answer that the question got before takes the question's place. Where a line
        quotes another one, the other one takes its place, too.
        """
        columns = self._index.columns_of(lines.rows)
        repeated = np.isin(lines.rows, self._repeating(lines.rows))
        scores = lines.scores.copy()
        if repeated.any():
            questions = self._index.keys_of(lines.rows[repeated])[:, 0]
            answers = np.flatnonzero(np.isin(columns["answers"], questions) & ~repeated)
            if len(answers):
                last = answers[columns["said_at"][answers].argmax()]
                scores[last] = max(scores[last], scores[repeated].max())
        for place in self._texts.ordered(lines.rows, scores, len(lines.rows)).tolist():
            score = float(scores[place])
            if score < self._search.min_similarity:
                return
            quoted = columns["quoted"][place]
            if quoted != columns["text"][place]:
                originals = np.flatnonzero((columns["text"] == quoted) & ~repeated)
                yield from ((int(lines.rows[each]), score) for each in originals[:1])
            if not repeated[place]:
                yield int(lines.rows[place]), score

    def _new(self, ranked: Iterator[tuple[int, float]], question: Question) -> Iterator[Hit]:
        """Return the lines that say something new, read as they are needed."""
        while batch := list(islice(ranked, 4 * self._search.top_k)):
            for hit in self._read(batch, question):
                if self._distinct.is_new(hit.content, speaker=hit.metadata.pop("sender")):
                    yield hit

    def _read(self, ranked: Sequence[tuple[int, float]], question: Question) -> Iterator[Hit]:
        ids = self._texts.ids(np.array([row for row, _ in ranked], np.int64))
        # As above: a message may have been revoked since it was ranked.
        rows = self._messages.filter(pk__in=ids).values_list(
            "pk",
            "content",
            "timestamp",
            "role",
            "session_id",
            "order_num",
            KT("metadata__sender_name"),
            _similarity(MessageEmbedding, "message", question),
        )
        found = {row[0]: row[1:] for row in rows}
        for key, (_, score) in zip(ids, ranked, strict=True):
            if key in found:
                content, said_at, role, session, order_num, sender, near = found[key]
                where = {"role": role, "session_id": str(session), "order_num": order_num}
                where |= {} if self._search.repeats else {"sender": sender or ""}
                yield Hit("message", key, content, score, near, said_at, where)

    def with_neighbours(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits; those of messages with the messages before and after, shortened."""
        shown = [hit.id for hit in hits if hit.source == "message"]
        keys = np.array([(key.int >> 64, key.int & (2**64 - 1)) for key in shown], np.uint64)
        rows = [int(self._index.rows_of(key[None])[0]) for key in keys]
        beside = neighbours_of(self._index, rows, REACH, mask=self._texts.mask)
        wanted = [row for pair in beside for row in pair if row is not None]
        ids = dict(zip(wanted, self._texts.ids(np.array(wanted, np.int64)), strict=True))
        read = self._messages.filter(pk__in=list(ids.values()))
        texts = {key: (role, text) for key, role, text in read.values_list("pk", "role", "content")}
        around = {
            key: {
                name: _shown(ids[row], *texts[ids[row]])
                for name, row in zip(("before", "after"), pair, strict=True)
                if row is not None and ids[row] in texts
            }
            for key, pair in zip(shown, beside, strict=True)
        }
        return [replace(hit, metadata={**hit.metadata, **around.get(hit.id, {})}) for hit in hits]


def _shown(key: UUID, role: str, content: str) -> dict[str, str]:
    shortened = cut_at_word(content, MAX_NEIGHBOUR_LENGTH)
    return {"message_id": str(key), "role": role, "content": shortened}


def _condition(left_out: LeftOut) -> Q:
    """Return the condition in the database for what ``left_out_mask`` marks."""
    same = Q(session_id=left_out.session_id) & (
        Q(order_num__lte=left_out.until, answers__isnull=True)
        | Q(answers__order_num__lte=left_out.until)
    )
    return (Q(session__created_at__lt=left_out.began_at) | same) & ~Q(pk=left_out.first_id)


def _read_expiry(rows: Sequence[Sequence[Any]]) -> Any:
    expiry = [np.inf if at is None else at.timestamp() for (at,) in rows]
    return np.array([(at,) for at in expiry], [("expires", np.float64)])


EXPIRY = Columns(["expires_at"], _read_expiry)


def _current(index: TextIndex) -> Mask | None:
    """Return which memories haven't expired; None if that is true of all."""
    now = timezone.now().timestamp()
    current = index.marked(lambda segment: segment.columns["expires"] > now)
    return None if current.all() else current


def _mask_of(index: TextIndex, texts: QuerySet[Any]) -> Mask:
    """Return which texts of the index are among these, as the database decides."""
    keys = Func("pk", function="uuid_send", output_field=BinaryField())
    together = Aggregate(keys, Value(b""), function="string_agg", output_field=BinaryField())
    sent = texts.order_by().aggregate(keys=together)["keys"] or b""
    mask = np.zeros(len(index), bool)
    mask[index.rows_of(np.frombuffer(sent, ">u8").reshape(-1, 2).astype(np.uint64))] = True
    return mask


def _similarity(vectors: type[Model], key: str, question: Question) -> Any:
    """Return the exact cosine of a row's vector to the whole question; NULL without one."""
    if question.vectors[0] is None:
        return Value(None, output_field=FloatField())
    own = vectors._default_manager.filter(**{key: OuterRef("pk")}, model=question.model)
    return Subquery(own.values_list(1.0 - CosineDistance("vector", question.vectors[0])))


def _distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits without copies of memories, and without messages that are such copies."""
    memories = DistinctTexts()
    new = {hit.id for hit in hits if hit.source == "memory" and memories.is_new(hit.content)}
    return [hit for hit in hits if hit.id in new or not memories.holds(hit.content)]


def _try_twice(search: Callable[[], Found]) -> Found | None:
    """Return the result of the search; None if it failed twice."""
    for attempt in (1, 2):
        try:
            # In a transaction a failed statement must not spoil those that follow.
            with transaction.atomic() if connection.in_atomic_block else nullcontext():
                return search()
        except DatabaseError:
            logger.exception("Recall failed (try %d of 2).", attempt)
    return None
