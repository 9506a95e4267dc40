"""Search memories and messages for one recall: what is found in memory is read from the database.

Visibility is decided there, in two querysets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice, takewhile
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

import numpy as np
from django.db import DatabaseError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memories_app.models import Memory
from memories_app.ranking.facade import (
    SCOPES,
    Columns,
    HeldScope,
    HeldTexts,
    Question,
    RankedTexts,
    SearchedTexts,
    StoredTexts,
    prepare_query,
    rank,
    search_words,
)
from memories_app.search.facade import (
    memories_held,
    memories_visible,
    scopes_visible,
)
from memoryproject.foundation.compiled_sql import read_by_id, sent_ids
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.message_features import DistinctTexts
from memoryproject.foundation.retrieval.query import informative_terms
from memoryproject.foundation.retrieval.subqueries import QueryPart, knows_nothing, query_parts
from memoryproject.foundation.retrieval.text_index import Mask, Rows, Segment, TextIndex
from memoryproject.foundation.text.characters import cut_at_word
from memoryproject.foundation.text.tokenizer import Kind
from sessions_app.models import Message
from sessions_app.models.messages import ASKING
from sessions_app.models.roles import GODFATHER
from sessions_app.recall.conversation_lines import (
    LINES,
    adjacent_lines,
    answers_to,
    business_now,
    left_out_mask,
    mask_of,
    messages_held,
    messages_visible,
)
from sessions_app.recall.fact_times import current_first, newest_first, place_of
from sessions_app.recall.hit_statements import message_read
from sessions_app.recall.hits import (
    MAX_NEIGHBOUR_LENGTH,
    MEMORIES,
    MESSAGES,
    Hit,
    LeftOut,
    RecallResult,
    Viewer,
)
from sessions_app.recall.memory_hits import read_memories
from sessions_app.recall.message_ranking import (
    MessageQuestion,
    RankedLines,
    rank_messages,
    similarities,
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
# No more memories than this are candidates.
MAX_RANKED = 1_000
# So many memories are read at once if those before them are copies of each other.
COPIES = 100
# So many lines more than are wanted are read at once, because some are copies of others.
SPARE = 3


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
    as_of: datetime | None = None

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
        memories = None
        if MEMORIES in self.sources:
            memories = _try_twice(lambda: self._memories(question, opened.memories))
            failed |= memories is None
        beside = memories or _Beside([], DistinctTexts())
        found: list[Hit] | None = []
        if lines and topics:
            found = _try_twice(lambda: lines.hits(question, topic_vectors, beside))
        hits = [*beside.memories, *(found or [])]
        best = sorted(hits, key=place_of)[: self.top_k]
        logger.debug("Recalled %d of %d candidates.", len(best), len(hits))
        return RecallResult(
            lines.with_neighbours(best) if lines else best,
            degraded=failed or not embedded or found is None,
        )

    def _open(self) -> _Opened:
        """Bring what is held of the searched scopes up to date."""
        model = self.embedder.model_id
        scopes = []
        chat_id = self.viewer.chat_id
        given = {"chat_id": chat_id}
        if MEMORIES in self.sources and self.as_of is None:
            scopes += [
                HeldScope(name, memories_held(name), model, EXPIRY, MAX_HELD_MEMORIES, given)
                for name in scopes_visible(**self._rights())
            ]
        memories = len(scopes)
        if MESSAGES in self.sources and chat_id is not None:
            scopes.append(
                HeldScope(f"messages:{chat_id}", messages_held, model, LINES, given=given)
            )
        found = SCOPES.open(scopes)
        return _Opened(found[:memories], found[memories] if memories < len(found) else None)

    def _rights(self) -> dict[str, Any]:
        return {
            "is_owner": self.viewer.user_role == GODFATHER,
            "is_staff": self.viewer.user_role == "staff",
            "chat_id": self.viewer.chat_id,
        }

    def _memories(self, question: Question, held: Sequence[TextIndex | None]) -> _Beside:
        parts = [part for part in held if part is not None]
        texts: SearchedTexts
        if len(parts) < len(held) or self.as_of is not None:
            visible = self._memories_searched()
            near = question.calibration.midpoint
            texts = StoredTexts(visible, model=question.model, near=near, sure=self.sure)
        else:
            together = [segment for part in parts for segment in part.segments]
            index = parts[0] if len(parts) == 1 else TextIndex(together)
            mask = _current(index)
            if self.memories_where:
                chosen = mask_of(index, self._memories_searched())
                mask = chosen if mask is None else mask & chosen
            texts = HeldTexts(index, mask=mask)
        ranked = rank(question, texts, top_k=MAX_RANKED)
        hits = self._memory_hits(question, ranked, texts)
        if not self.repeats:
            hits = current_first(hits, self.as_of or timezone.now())
        found = _Beside.of(hits, most=self.top_k, repeats=self.repeats)
        read = partial(read_memories, question, rights=self._rights(), as_of=self.as_of)
        ordered = newest_first(found.memories, read)
        return replace(found, memories=ordered[: self.top_k])

    def _memory_hits(
        self, question: Question, ranked: RankedTexts, texts: SearchedTexts
    ) -> Iterator[Hit]:
        """Return the memories that are relevant, best first, read as they are needed."""
        relevant = np.flatnonzero(ranked.scores >= self.min_similarity)
        # Many clients may have a copy of what the owner finds.
        for places in np.split(relevant, range(self.top_k, len(relevant), COPIES)):
            scores = ranked.scores[places].tolist()
            ids = texts.ids(texts.taken(ranked.texts, places))
            if not ids:
                break
            # Visibility is filtered again: a memory may have become private since it was ranked.
            rights = self._rights()
            yield from read_memories(question, ids, scores, rights=rights, as_of=self.as_of)

    def _memories_searched(self) -> QuerySet[Memory]:
        visible = memories_visible(**self._rights(), as_of=self.as_of)
        return visible.filter(self.memories_where) if self.memories_where else visible


@dataclass(frozen=True)
class _Opened:
    """What is held: of each scope of memories (None if it is too large), and of the messages."""

    memories: Sequence[TextIndex | None]
    messages: TextIndex | None


@dataclass(frozen=True)
class _Beside:
    """The memories that were found, the best first, without copies of each other.

    Messages that are copies of them are left out, and messages behind enough of them.
    """

    memories: Sequence[Hit]
    texts: DistinctTexts

    @classmethod
    def of(cls, memories: Iterator[Hit], *, most: int, repeats: bool) -> _Beside:
        texts = DistinctTexts()
        new = (hit for hit in memories if texts.is_new(hit.content) or repeats)
        return cls(list(islice(new, most)), texts)

    def ahead_of(self, score: float) -> int:
        return sum(hit.score > score for hit in self.memories)


class _Lines:
    """The messages of a chat, searched for one question."""

    def __init__(self, search: Search, index: TextIndex, subqueries: Sequence[QueryPart]) -> None:
        self._search = search
        self._index = index
        self._words = [term for term in subqueries[0].terms if term.kind is not Kind.SOUGHT]
        self._topic = informative_terms(subqueries[0].terms)
        self._longest = 3 * len(subqueries[0].terms) + 3
        self._distinct = DistinctTexts("" if search.repeats else search.query)
        # By the hash of a text: whether it only repeats the query.
        self._compared: dict[int, bool] = {}
        # By its id: each line that was read as a hit, and the ones before and after it.
        self._beside: dict[UUID, Sequence[UUID | None]] = {}
        # By its id: role and text of each of all these.
        self._texts_read: dict[UUID, tuple[str, str]] = {}
        mask = None if search.left_out is None else left_out_mask(index, search.left_out)
        if search.messages_where:
            messages = messages_visible(search.viewer.chat_id).filter(search.messages_where)
            chosen = mask_of(index, messages)
            mask = chosen if mask is None else mask & chosen
        repeats = None if search.repeats else self._repeating
        self._texts = HeldTexts(index, mask=mask, repeats=repeats)
        self.found = search_words(subqueries, self._texts)

    def _repeating(self, rows: Rows) -> Rows:
        """Return which of these lines only repeat the query.

        Only lines that ask for something and hold nearly all of its words, or all that name its
        topic, and hardly others, are read for that.
        """
        if not len(rows):
            return rows
        rows = rows[self._index.lengths_of(rows) <= self._longest]
        likely = self._texts.holding(rows, self._words, lacking=self._distinct.most_lacking)
        rows = np.union1d(likely, self._texts.holding(rows, self._topic, lacking=0))
        rows = rows[self._index.counts_of(rows, [ASKING])[:, 0] > 0]
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

    def hits(
        self, question: Question, topics: Sequence[Sequence[float] | None], beside: _Beside
    ) -> list[Hit]:
        """Return the lines that answer best, best first.

        Those that can't be among the best because of the memories ``beside`` them aren't read.
        """
        search = self._search
        message_question = MessageQuestion(question, topics, self.found, business_now())
        lines = rank_messages(message_question, self._texts)
        if search.repeats:
            order = self._texts.ordered(lines.rows, lines.scores, search.top_k)
            chosen = [(int(lines.rows[place]), float(lines.scores[place])) for place in order]
            relevant = [each for each in chosen if each[1] >= search.min_similarity]
            return list(self._read(relevant, question)) if relevant else []
        found: list[Hit] = []
        for hit in self._new(self._originals(lines), question, beside):
            # Of those with one score, the earliest are the best.
            better = sum(other.score > hit.score for other in found)
            if better + beside.ahead_of(hit.score) >= search.top_k:
                break
            if not beside.texts.holds(hit.content):
                found.append(hit)
            if len(found) == 2 * search.top_k:
                break
        return found

    def _originals(self, lines: RankedLines) -> Iterator[tuple[int, float]]:
        """Return the lines, best first, with their scores, but not those that repeat the query.

        The last answer that the question got before, and that says something, takes the question's
        place. Where a line quotes another one, the other one takes its place, too.
        """
        columns = self._index.columns_of(lines.rows)
        repeated = np.isin(lines.rows, self._repeating(lines.rows))
        scores = lines.scores.copy()
        if repeated.any():
            answers = answers_to(self._index, lines.rows, repeated, REACH, mask=self._texts.mask)
            last = self._first_known(lines.rows, answers[:MAX_COMPARED])
            scores[last] = np.maximum(scores[last], scores[repeated].max())
        enough = np.flatnonzero(scores >= self._search.min_similarity)
        few = 8 * self._search.top_k
        best_first = self._texts.best_first(lines.rows[enough], scores[enough], few)
        for place in (int(enough[each]) for each in best_first):
            score = float(scores[place])
            quoted = columns["quoted"][place]
            if quoted != columns["text"][place]:
                originals = np.flatnonzero((columns["text"] == quoted) & ~repeated)
                yield from ((int(lines.rows[each]), score) for each in originals[:1])
            if not repeated[place]:
                yield int(lines.rows[place]), score

    def _first_known(self, rows: Rows, places: Rows) -> Rows:
        """Return the first of these places whose line doesn't say that nothing is known."""
        ids = self._texts.ids(rows[places])
        read = dict(Message.objects.filter(pk__in=ids).values_list("pk", "content"))
        known = (place for place, key in enumerate(ids) if not knows_nothing(read.get(key, "")))
        return places[list(islice(known, 1))]

    def _new(
        self, ranked: Iterator[tuple[int, float]], question: Question, beside: _Beside
    ) -> Iterator[Hit]:
        """Return the lines that say something new, read as they are needed."""
        top_k = self._search.top_k
        chosen = takewhile(lambda line: beside.ahead_of(line[1]) < top_k, ranked)
        # Few of the best ones are copies of each other.
        while batch := list(islice(chosen, top_k + SPARE)):
            for hit in self._read(batch, question):
                if self._distinct.is_new(hit.content, speaker=hit.metadata.pop("sender")):
                    yield hit

    def _read(self, ranked: Sequence[tuple[int, float]], question: Question) -> Iterator[Hit]:
        """Read these lines, and with the same statement those before and after them."""
        rows = [row for row, _ in ranked]
        beside = adjacent_lines(self._index, rows, REACH, mask=self._texts.mask)
        wanted = list({*rows, *(row for pair in beside for row in pair if row is not None)})
        ids = dict(zip(wanted, self._texts.ids(np.array(wanted, np.int64)), strict=True))
        # As above: a message may have been revoked since it was ranked.
        found = read_by_id(
            message_read(),
            ids=sent_ids(ids.values()),
            hits=sent_ids(ids[row] for row in rows),
            chat_id=self._search.viewer.chat_id,
            model=question.model,
        )
        self._texts_read |= {key: (role, text) for key, (text, role, *_) in found.items()}
        near = similarities(question, {key: vector for key, (*_, vector) in found.items()})
        for (row, score), pair in zip(ranked, beside, strict=True):
            key = ids[row]
            if key not in found:
                continue
            self._beside[key] = [None if each is None else ids[each] for each in pair]
            content, role, said_at, session, order_num, sender, _ = found[key]
            where = {"role": role, "session_id": str(session), "order_num": order_num}
            where |= {} if self._search.repeats else {"sender": sender or ""}
            yield Hit("message", key, content, score, near.get(key), said_at, where)

    def with_neighbours(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits; those of messages with the messages before and after, shortened.

        A message that is itself a hit, or stands beside an earlier one, is not repeated.
        """
        taken = {hit.id for hit in hits}
        complete = []
        for hit in hits:
            pair = zip(("before", "after"), self._beside.get(hit.id, ()), strict=False)
            new = {name: key for name, key in pair if key is not None and key not in taken}
            taken.update(new.values())
            around = {
                name: _shown(key, *self._texts_read[key])
                for name, key in new.items()
                if key in self._texts_read
            }
            complete.append(replace(hit, metadata={**hit.metadata, **around}))
        return complete


def _shown(key: UUID, role: str, content: str) -> dict[str, str]:
    shortened = cut_at_word(content, MAX_NEIGHBOUR_LENGTH)
    return {"message_id": str(key), "role": role, "content": shortened}


def _read_expiry(rows: Sequence[Sequence[Any]]) -> Any:
    expiry = [np.inf if at is None else at.timestamp() for (at,) in rows]
    return np.array([(at,) for at in expiry], [("expires", np.float64)])


EXPIRY = Columns(["expires_at"], _read_expiry)


_first_expiries: WeakKeyDictionary[Segment, float] = WeakKeyDictionary()


def _first_expiry(segment: Segment) -> float:
    found = _first_expiries.get(segment)
    if found is None:
        found = _first_expiries[segment] = float(segment.columns["expires"].min(initial=np.inf))
    return found


def _current(index: TextIndex) -> Mask | None:
    """Return which memories haven't expired; None if that is true of all."""
    now = timezone.now().timestamp()
    if all(_first_expiry(segment) > now for segment in index.segments):
        return None
    return index.marked(lambda segment: segment.columns["expires"] > now)


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
