"""Rank the messages of a chat against a question, each in the context of its neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import F, QuerySet
from django.db.models.fields.json import KT

from memories_app.search.facade import (
    Question,
    Ranked,
    WordSearch,
    any_of,
    cosines_of,
    known_terms,
    rank,
)
from memoryproject.foundation.retrieval.message_features import (
    BY_WORDS,
    REACH,
    WITH_VECTORS,
    DistinctTexts,
    Line,
    Scorer,
    everyday_words,
    features_of,
    speaker_named,
    unquoted,
)
from memoryproject.foundation.retrieval.query import text_without
from memoryproject.foundation.retrieval.relevance import IN_USE, LexicalQuery
from memoryproject.foundation.retrieval.reranking import match_matrix
from memoryproject.foundation.retrieval.subqueries import Period, QueryPart, best_fit, periods_asked
from memoryproject.foundation.text.tokenizer import Kind
from sessions_app.models import MessageEmbedding
from sessions_app.recall.neighbours import lines_around, placed

# Limit of lines that are ranked with their context.
SEEDS = 100
# Limit of seeds that may be the same text.
MAX_SAME_SEEDS = 30
# A longer silence begins a new run of messages.
SILENCE = timedelta(hours=6)

_AROUND = """
WITH texts (key, session_id, place, answer_to, order_num, said_at, content, sender, length, terms)
AS ({scope})
SELECT key, span, said_at, answer_to, content, sender, length,
       ARRAY(SELECT term FROM unnest(terms) AS term WHERE term = ANY(%s))
FROM texts
JOIN unnest(%s::uuid[], %s::int[], %s::int[]) WITH ORDINALITY AS spans (session_id, low, high, span)
  ON texts.session_id = spans.session_id AND texts.place BETWEEN spans.low AND spans.high
ORDER BY span, place, answer_to NULLS FIRST, order_num
"""


@dataclass(frozen=True)
class MessageQuestion:
    """A question to a conversation.

    ``topics``: its texts without the words that are frequent in the conversation, with a vector
    for each.
    """

    question: Question
    topics: Sequence[Sequence[float] | None]
    found: WordSearch
    today: date


def topics_of(subqueries: Sequence[QueryPart], found: WordSearch) -> list[str]:
    """Return each text of the question without the words that carry no weight here."""
    return [
        text_without(
            text.text,
            everyday_words(known_terms(text, found.words), frequencies, found.texts),
        )
        for text, frequencies in zip(subqueries, found.frequencies, strict=True)
    ]


@dataclass(frozen=True)
class Scorers:
    """The scorers of lines: ``with_vectors`` if the question has a vector, else ``by_words``."""

    with_vectors: Scorer = WITH_VECTORS
    by_words: Scorer = BY_WORDS


DEFAULT_WEIGHTS = Scorers()


def rank_messages(
    message_question: MessageQuestion,
    messages: QuerySet[Any],
    *,
    top_k: int,
    distinct: DistinctTexts | None = None,
    judges: Scorers = DEFAULT_WEIGHTS,
) -> list[Ranked]:
    """Return the ``top_k`` lines that answer best, best first.

    ``messages``: the lines that may be found. ``distinct``: skips lines that say nothing new. The
    number of queries doesn't depend on the question
    or on the result.
    """
    seeds = rank(
        message_question.question,
        messages,
        MessageEmbedding,
        key="message",
        top_k=3 * SEEDS,
        found=message_question.found,
    )
    seeds = _spread(seeds)
    if not seeds:
        return []
    rows = _rows_around(
        [seed.key for seed in seeds], messages, list(message_question.found.words.of_terms())
    )
    by_topic = replace(
        message_question.question,
        vectors=[message_question.question.vectors[0], *message_question.topics],
    )
    keys = [row.key for row in rows]
    cosines = cosines_of(keys, by_topic, messages, MessageEmbedding, key="message")
    nothing: list[float | None] = [None] * (1 + len(message_question.topics))
    near = [cosines.get(key, nothing) for key in keys]
    best = [0.0] * len(rows)
    for place, query in enumerate(message_question.found.queries):
        worth = IN_USE.part_worth if place else 1.0
        judge = judges.by_words if message_question.topics[place] is None else judges.with_vectors
        scores = _scores(
            place, query, message_question, rows, [cosine[1 + place] for cosine in near], judge
        )
        best = [max(old, worth * new) for old, new in zip(best, scores, strict=True)]
    ranked = [
        Ranked(row.key, score, cosine[0])
        for row, score, cosine in zip(rows, best, near, strict=True)
    ]
    ranked = sorted(ranked, key=lambda item: (-item.score, str(item.key)))
    if distinct is None:
        return ranked[:top_k]
    by_key = {row.key: row for row in rows}
    repeated = _repeated(message_question, rows, distinct)
    new = (
        item
        for item in _originals(_with_last_answer(ranked, rows, repeated), by_key)
        if item.key not in repeated
        and distinct.is_new(by_key[item.key].content, speaker=by_key[item.key].sender)
    )
    return list(islice(new, top_k))


def _repeated(
    message_question: MessageQuestion, rows: Sequence[_Row], distinct: DistinctTexts
) -> set[UUID]:
    """Return the lines that only repeat the question.

    Only lines that hold nearly all of its words are read for that.
    """
    query = message_question.found.queries[0]
    matches = match_matrix(query, rows)
    words = matches[:, [kind is not Kind.SOUGHT for kind in query.kinds]]
    lacking = (words <= 0).sum(axis=1)
    return {
        row.key
        for row, count in zip(rows, lacking, strict=True)
        if count <= distinct.most_lacking and distinct.repeats_query(row.content)
    }


def _originals(ranked: Sequence[Ranked], rows: Mapping[UUID, _Row]) -> list[Ranked]:
    """Return the lines; where one quotes another one, the other one takes its place, too."""
    originals = {_same(row.content): row.key for row in reversed(list(rows.values()))}
    cosines = {item.key: item.similarity for item in ranked}
    found = []
    for item in ranked:
        quoted = unquoted(rows[item.key].content)
        original = originals.get(_same(quoted), item.key)
        if quoted != rows[item.key].content and original != item.key:
            found.append(Ranked(original, item.score, cosines[original]))
        found.append(item)
    return found


def _same(text: str) -> str:
    return text.strip().casefold()


def _with_last_answer(
    ranked: Sequence[Ranked], rows: Sequence[_Row], repeated: Collection[UUID]
) -> list[Ranked]:
    """Return the lines; the last answer that the question got before takes the question's place."""
    answers = [row for row in rows if row.answer_to in repeated and row.key not in repeated]
    if not answers:
        return list(ranked)
    last = max(answers, key=lambda row: row.said_at)
    score = next(item.score for item in ranked if item.key in repeated)
    found = [
        replace(item, score=max(item.score, score)) if item.key == last.key else item
        for item in ranked
    ]
    return sorted(found, key=lambda item: -item.score)


def _spread(seeds: Sequence[Ranked]) -> list[Ranked]:
    """Return the best seeds, few of those that are probably one text, said again and again.

    The same text has the same score and the same cosine.
    """
    kept: list[Ranked] = []
    counts: Counter[tuple[float, float | None]] = Counter()
    for seed in seeds:
        counts[seed.score, seed.similarity] += 1
        if counts[seed.score, seed.similarity] <= MAX_SAME_SEEDS:
            kept.append(seed)
    return kept[:SEEDS]


@dataclass(frozen=True)
class _Row:
    """A line of the conversation. Lines of one ``run`` were said one after the other.

    ``answer_to``: the line that it answers. ``sender``: who wrote it, in a group; ``speaker``: who
    says it, also by a name in the line.
    """

    key: UUID
    run: int
    said_at: datetime
    content: str
    answer_to: UUID | None
    sender: str
    speaker: str
    length: int
    counts: Mapping[str, float]


def _rows_around(keys: Sequence[UUID], messages: QuerySet[Any], terms: list[str]) -> list[_Row]:
    """Return the lines and their neighbours in the order of the conversation.

    An answer stands with its question.
    """
    seeds = placed(messages.order_by()).filter(pk__in=any_of(keys))
    spans = _spans(seeds.values_list("session_id", "place"))
    columns = lines_around(messages.order_by(), spans, beside=keys).values_list(
        "pk",
        "session_id",
        "place",
        F("answers"),
        "order_num",
        "timestamp",
        "content",
        KT("metadata__sender_name"),
        "term_count",
        "terms",
    )
    inner, params = columns.query.get_compiler(messages.db).as_sql()
    sessions, lows, highs = (list(column) for column in zip(*spans, strict=True))
    with connections[messages.db].cursor() as cursor:
        cursor.execute(_AROUND.format(scope=inner), [*params, terms, sessions, lows, highs])
        return _in_runs(cursor.fetchall())


def _spans(places: Sequence[tuple[UUID, int]] | QuerySet[Any, Any]) -> list[tuple[UUID, int, int]]:
    """Return the spans of sessions that hold everything around these places, without overlap."""
    spans: list[tuple[UUID, int, int]] = []
    for session_id, place in sorted(places, key=lambda item: (str(item[0]), item[1])):
        low, high = place - REACH, place + REACH
        if spans and spans[-1][0] == session_id and low <= spans[-1][2] + 1:
            spans[-1] = (session_id, spans[-1][1], high)
        else:
            spans.append((session_id, low, high))
    return spans


def _in_runs(rows: Sequence[tuple[Any, ...]]) -> list[_Row]:
    lines: list[_Row] = []
    run = 0
    last: tuple[int, datetime] | None = None
    for key, span, said_at, answer_to, content, sender, length, terms in rows:
        if last is not None and (last[0] != span or abs(said_at - last[1]) > SILENCE):
            run += 1
        last = (span, said_at)
        counts: dict[str, float] = {}
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
        speaker = speaker_named(content) or sender or ""
        lines.append(
            _Row(key, run, said_at, content, answer_to, sender or "", speaker, length, counts)
        )
    return lines


def _scores(
    place: int,
    query: LexicalQuery,
    message_question: MessageQuestion,
    rows: Sequence[_Row],
    cosines: Sequence[float | None],
    judge: Scorer,
) -> list[float]:
    """Return for each line the probability that it answers one text of the question."""
    text = message_question.question.subqueries[place].text
    periods = periods_asked(text, today=message_question.today)
    lines = [
        _line(row, cosine, message_question, periods)
        for row, cosine in zip(rows, cosines, strict=True)
    ]
    features = features_of(text, query, lines)
    chances: list[float] = (judge.chances(features) * query.substance).tolist()
    return chances


def _line(
    row: _Row, cosine: float | None, message_question: MessageQuestion, periods: Sequence[Period]
) -> Line:
    curve = message_question.question.calibration
    return Line(
        text=row.content,
        counts=row.counts,
        length=row.length,
        topic=None if cosine is None else curve.slope * (cosine - curve.midpoint),
        segment=row.run,
        speaker=row.speaker,
        period_fit=best_fit(periods, row.said_at.date()),
    )
