"""Search memories and messages for one recall: sample, embed, choose candidates, rank, read.

Visibility is decided in two querysets, from which everything is read.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property, partial
from itertools import islice
from typing import TypeVar
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memories_app.facts.validation import ONLY_ASKS, PROMISE
from memories_app.models import Memory, MemoryEmbedding
from memories_app.ranking import (
    Question,
    Sample,
    Texts,
    candidates_read,
    distinct_terms,
    prepare_question,
    rank_sets,
    samples_read,
)
from memories_app.visibility import EVERY_SCOPE, memories_visible, scopes_visible
from memoryproject.foundation.integrations.embedders.base import Embedder, fact_queries
from memoryproject.foundation.retrieval.message_features import DistinctTexts
from memoryproject.foundation.retrieval.subqueries import knows_nothing, query_parts, unquoted
from memoryproject.foundation.text.characters import cut_at_word
from sessions_app.models.chats import GODFATHER
from sessions_app.models.messages import ASKING
from sessions_app.recall.hits import (
    MAX_NEIGHBOUR_LENGTH,
    MEMORIES,
    MESSAGES,
    NEAREST_SIMILARITY,
    SENDER_NAME,
    Hit,
    LeftOut,
    RecallResult,
    Viewer,
    as_nearest,
    behind,
    current_first,
    name_in_label,
    newest_first,
    place_of,
)
from sessions_app.recall.message_ranking import (
    Line,
    adjacent,
    business_now,
    messages_searched,
    rank_messages,
    read_memories,
    topics_of,
)
from sessions_app.recall.message_search import Named, people_named, rank_named

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

# So many memories are read, so that no message that is a copy of one takes a place.
DEEP = 50
# So many more are read at once if those are copies of each other.
COPIES = 100


@dataclass(frozen=True)
class Search:
    """The arguments of ``recall``. ``least``: the score of the texts that are searched for."""

    query: str
    viewer: Viewer
    embedder: Embedder
    top_k: int
    min_similarity: float
    nearest: int
    sources: Collection[str]
    messages_where: Q | None
    left_out: LeftOut | None
    memories_where: Q | None
    repeats: bool
    with_ended: bool
    as_of: datetime | None = None

    @property
    def least(self) -> float:
        """The score that a text has at least to be looked at."""
        return min(NEAREST_SIMILARITY if self.nearest else 1.0, self.min_similarity)

    def run(self) -> RecallResult:
        parts = query_parts(self.query)
        terms = distinct_terms(parts)
        sees_all = EVERY_SCOPE in scopes_visible(**self.viewer.rights()) and not self.repeats
        find = partial(people_named, self.query, terms, but=self.viewer.chat_id)
        named = (_try_twice(find) if sees_all else None) or {}
        memories, messages = self._memory_texts(named), self._message_texts()
        known = _try_twice(lambda: samples_read(memories, terms))
        own = _try_twice(lambda: samples_read(messages, terms, [ASKING])) if messages else []
        failed = known is None or own is None
        samples, line_samples = known or [], own or []
        if not any(sample.ids for sample in [*samples, *line_samples]):
            return RecallResult([], degraded=failed)
        topics = topics_of(parts, next(iter(line_samples), None))
        nameless = [part.without(frozenset().union(*named.values())) for part in parts if named]
        # Most embedders ask for facts as for messages: those embed a question once.
        prepare = cache(
            partial(
                prepare_question,
                [*parts, *nameless],
                [*topics, *(part.text for part in nameless)],
                self.embedder,
            )
        )
        found: _Beside | None = None
        if any(sample.ids for sample in samples):
            for_facts, embedded = prepare(fact_queries(self.embedder))
            sets = list(zip(memories, samples, strict=True))
            found = _try_twice(partial(self._memories, for_facts, sets, named))
            failed |= found is None or not embedded
        beside = found or _Beside([], DistinctTexts())
        lines: _Lines | None = None
        for texts, sample in zip(messages, line_samples, strict=False):
            if sample.ids:
                both, embedded = prepare(None)
                question = both.of_parts(slice(len(parts)))
                lines = _try_twice(partial(_Lines, self, question, texts, sample))
                failed |= lines is None or not embedded
        hits = [*beside.memories, *(lines.hits(beside) if lines else [])]
        if not self.repeats:
            hits = behind(hits, self.min_similarity, is_named=bool(named))
        ranked = sorted(hits, key=place_of)[: self.top_k]
        best = [hit for hit in ranked if hit.score >= self.min_similarity]
        near = [hit for hit in ranked if hit.score < self.min_similarity]
        best += map(as_nearest, near[: max(self.nearest - len(best), 0)])
        logger.debug("Recalled %d of %d candidates.", len(best), len(hits))
        return RecallResult(lines.with_neighbours(best) if lines else best, degraded=failed)

    def _memories_visible(self) -> QuerySet[Memory]:
        visible = memories_visible(**self.viewer.rights(), as_of=self.as_of)
        if self.viewer.user_role not in (GODFATHER, "staff"):
            visible = visible.exclude(type=PROMISE, metadata__contains=ONLY_ASKS)
        return visible.filter(self.memories_where) if self.memories_where else visible

    def _memory_texts(self, named: Collection[UUID]) -> list[Texts]:
        """Return the sets of memories that are searched: each is one that an index reads.

        The last ones are those of the people that the question names.
        """
        if MEMORIES not in self.sources:
            return []
        visible = self._memories_visible().exclude(content="")
        rows = [
            visible.exclude(chat_id__in=named)
            if scope == EVERY_SCOPE
            else visible.filter(scope=scope, content_hash__gt="")
            for scope in scopes_visible(**self.viewer.rights())
        ]
        rows += [visible.filter(chat_id=chat) for chat in named]
        newest = ("-created_at", "memory_id")
        return [Texts(each, newest, MemoryEmbedding, "memory") for each in rows]

    def _message_texts(self) -> list[Texts]:
        """Return the messages that are searched, as one set, or none."""
        chat_id = self.viewer.chat_id
        if MESSAGES not in self.sources or chat_id is None:
            return []
        return [messages_searched(chat_id, where=self.messages_where, left_out=self.left_out)]

    def _memories(
        self, question: Question, sets: Sequence[tuple[Texts, Sample]], named: Named
    ) -> "_Beside":
        """Return the memories that answer; ``question``: see ``rank_named``, where it names."""
        found = [
            candidates_read(part, sample, question.terms, question.vectors, model=question.model)
            for part, sample in sets
        ]
        least = self.min_similarity
        ranked = rank_named(question, found, named, least) if named else rank_sets(question, found)
        candidates, scores = ranked
        rows = [row for row, score in enumerate(scores) if score >= self.least]
        rows.sort(key=lambda row: (-scores[row], candidates.ids[row]))
        scored = [(candidates.ids[row], float(scores[row])) for row in rows]
        near = {candidates.ids[row]: candidates.cosines[row, 0] for row in rows}
        hits = self._memory_hits(scored, near)
        if not self.with_ended:
            hits = current_first(hits, self.as_of or timezone.now(), sure=least)
        beside = _Beside.of(hits, most=max(self.top_k, DEEP), repeats=self.repeats)
        ordered = newest_first(
            beside.memories, lambda keys: self._read(dict.fromkeys(keys, 0.0), near)
        )
        # Of equal ones the same are chosen, however many are asked for.
        return _Beside(sorted(ordered, key=place_of)[: self.top_k], beside.texts)

    def _memory_hits(
        self, ranked: Sequence[tuple[UUID, float]], near: Mapping[UUID, float]
    ) -> Iterator[Hit]:
        """Return the memories that are relevant, best first, read as they are needed.

        They are read through their visibility again: one may have become private meanwhile.
        """
        start, size = 0, max(self.top_k, DEEP)
        while batch := ranked[start : start + size]:
            yield from self._read(dict(batch), near)
            # Many clients may have a copy of what the owner finds.
            start, size = start + size, COPIES

    def _read(self, scores: Mapping[UUID, float], near: Mapping[UUID, float]) -> Iterator[Hit]:
        rows = self._memories_visible().filter(pk__in=list(scores))
        return read_memories(rows, scores, near, viewer=self.viewer, as_of=self.as_of)


@dataclass(frozen=True)
class _Beside:
    """The memories that were found, the best first, without copies of each other.

    Messages that are copies of them are left out.
    """

    memories: Sequence[Hit]
    texts: DistinctTexts

    @classmethod
    def of(cls, memories: Iterator[Hit], *, most: int, repeats: bool) -> "_Beside":
        texts = DistinctTexts()
        new = (hit for hit in memories if texts.is_new(hit.content) or repeats)
        return cls(list(islice(new, most)), texts)


class _Lines:
    """The messages of a chat, searched for one question."""

    def __init__(self, search: Search, question: Question, texts: Texts, sample: Sample) -> None:
        self._search = search
        self._texts = texts
        candidates = candidates_read(
            texts, sample, question.terms, question.vectors, model=question.model
        )
        self._ranked = rank_messages(question, texts, sample, candidates, business_now())
        self._distinct = DistinctTexts("" if search.repeats else search.query)
        self._contents = self._whole()

    @cached_property
    def _repeated(self) -> frozenset[int]:
        """The lines that only repeat the query."""
        if self._search.repeats:
            return frozenset()
        lines = self._ranked.lines
        return frozenset(
            number
            for number, line in enumerate(lines)
            if ASKING in line.terms and self._distinct.repeats_query(line.content)
        )

    def hits(self, beside: _Beside) -> list[Hit]:
        """Return the lines that answer best, best first, and say something new."""
        search = self._search
        found: list[Hit] = []
        found_lines = self._order() if search.repeats else self._originals()
        for number, score in found_lines:
            line = self._ranked.lines[number]
            content = self._contents.get(line.id)
            if content is None:
                continue
            if not search.repeats and (
                beside.texts.holds(content)
                or not self._distinct.is_new(content, speaker=line.sender)
            ):
                continue
            place = {"session_id": str(line.session), "order_num": line.order_num}
            where = {"role": line.role, **place}
            if line.sender:
                where[SENDER_NAME] = name_in_label(line.sender)
            near = line.cosines[0]
            found.append(Hit("message", line.id, content, score, near, line.said_at, where))
            if len(found) == search.top_k:
                break
        return found

    def _order(self) -> list[tuple[int, float]]:
        """Return the relevant lines with their scores, best first, of equal ones the earliest."""
        scores = self._scores
        least = self._search.least
        relevant = [number for number in range(len(scores)) if scores[number] >= least]
        relevant.sort(key=lambda number: (-scores[number], self._ranked.lines[number].epoch))
        return [(number, scores[number]) for number in relevant]

    @cached_property
    def _scores(self) -> list[float]:
        """The score of each line. The last answer to a question that repeats the query, if it says
        something, has the question's score."""
        lines, scores = self._ranked.lines, self._ranked.scores.tolist()
        if self._repeated:
            answers = self._answers()
            best = max(scores[number] for number in self._repeated)
            for number in answers[:1]:
                scores[number] = max(scores[number], best)
            for number in self._repeated:
                scores[number] = 0.0
        return [round(score, 12) for score in scores] if lines else []

    def _answers(self) -> list[int]:
        """Return the lines that answered the repeated question, the newest first.

        Imported messages don't say which of them they answer: there it is the line after the
        question. Answers that only say that nothing is known are left out.
        """
        lines = self._ranked.lines
        questions = {lines[number].id for number in self._repeated}
        answers = [number for number, line in enumerate(lines) if line.answers in questions]
        if not answers:
            after = [adjacent(lines, number)[1] for number in self._repeated]
            following = {line.id for line in after if line is not None}
            answers = [
                number
                for number, line in enumerate(lines)
                if line.id in following and not line.content.rstrip().endswith("?")
            ]
        answers = [
            number
            for number in answers
            if number not in self._repeated and not knows_nothing(lines[number].content)
        ]
        return sorted(answers, key=lambda number: lines[number].epoch, reverse=True)

    def _originals(self) -> Iterator[tuple[int, float]]:
        """Return the relevant lines, best first; before one that quotes another line, that one."""
        lines = self._ranked.lines
        for number, score in self._order():
            quoted = unquoted(lines[number].content)
            if quoted != lines[number].content:
                original = self._places.get(DistinctTexts.key_of(quoted))
                if original is not None and original not in self._repeated:
                    yield original, score
            yield number, score

    @cached_property
    def _places(self) -> dict[object, int]:
        """The first line of each text."""
        lines = reversed(list(enumerate(self._ranked.lines)))
        return {DistinctTexts.key_of(line.content): number for number, line in lines}

    def _whole(self) -> dict[UUID, str]:
        """Read the whole texts of the best lines, through their visibility again."""
        likely = [self._ranked.lines[number].id for number, _ in islice(self._originals(), 400)]
        rows = self._texts.rows.filter(pk__in=likely).order_by()
        return dict(rows.values_list("pk", "content"))

    def with_neighbours(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits; those of messages with the messages before and after, shortened.

        A message that is itself a hit, or stands beside an earlier one, is not repeated.
        """
        lines = self._ranked.lines
        places = {line.id: number for number, line in enumerate(lines)}
        taken = {hit.id for hit in hits}
        for hit in hits:
            if hit.source != "message":
                continue
            pair = zip(("before", "after"), adjacent(lines, places[hit.id]), strict=True)
            for name, line in pair:
                if line is not None and line.id not in taken:
                    taken.add(line.id)
                    hit.metadata[name] = _shown(line)
        return list(hits)


def _shown(line: Line) -> dict[str, str]:
    shortened = cut_at_word(line.content, MAX_NEIGHBOUR_LENGTH)
    about = {"message_id": str(line.id), "role": line.role, "content": shortened}
    return {**about, SENDER_NAME: name_in_label(line.sender)} if line.sender else about


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
