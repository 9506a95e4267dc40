"""Rank the messages of a chat against a question, each in the context of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from uuid import UUID

import numpy as np

from memories_app.ranking.facade import HeldTexts, Question, WordSearch, rank, vectors_from
from memoryproject.foundation.retrieval.message_features import (
    BY_WORDS,
    REACH,
    WITH_VECTORS,
    Lines,
    Scorer,
    everyday_words,
    features_of,
)
from memoryproject.foundation.retrieval.query import IN_USE, text_without
from memoryproject.foundation.retrieval.reranking import Floats
from memoryproject.foundation.retrieval.subqueries import (
    QueryPart,
    best_fit,
    known_terms,
    periods_asked,
)
from memoryproject.foundation.retrieval.text_index import Mask, Rows
from sessions_app.recall.conversation_lines import days_of, lines_around

# Limit of lines that are ranked with their context.
SEEDS = 100
# Limit of seeds that may be the same text.
MAX_SAME_SEEDS = 30


@dataclass(frozen=True)
class MessageQuestion:
    """A question to a conversation.

    ``topics``: its texts without the words that are frequent in the conversation, with a vector
    for each. ``now``: in the time zone whose days the question names.
    """

    question: Question
    topics: Sequence[Sequence[float] | None]
    found: WordSearch
    now: datetime


@dataclass(frozen=True)
class RankedLines:
    """Lines in the order of the conversation, with the score of each and its cosine (or NaN)."""

    rows: Rows
    scores: Floats
    similarities: Floats


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
    """The scorers of lines: ``with_vectors`` if question and line have a vector, else ``by_words``.

    A line has none in another language than the embedder's, and for a moment after it was stored.
    """

    with_vectors: Scorer = WITH_VECTORS
    by_words: Scorer = BY_WORDS

    def chances(self, features: Floats, *, compared: Mask | bool) -> Floats:
        """Return the probability of each line; ``compared``: its vector, with the question's."""
        if np.all(compared):
            return self.with_vectors.chances(features)
        chances: Floats = np.where(
            compared, self.with_vectors.chances(features), self.by_words.chances(features)
        )
        return chances


DEFAULT_WEIGHTS = Scorers()


def rank_messages(
    message_question: MessageQuestion, texts: HeldTexts, *, judges: Scorers = DEFAULT_WEIGHTS
) -> RankedLines:
    """Return the lines that may answer the question, and those around them, with their scores."""
    question = message_question.question
    seeds = rank(question, texts, top_k=3 * SEEDS, found=message_question.found)
    around = lines_around(
        texts.index,
        _spread(seeds.texts, seeds.scores, seeds.similarities),
        REACH,
        mask=texts.mask,
    )
    rows = around.rows
    words = texts.counted(rows, list(message_question.found.words.of_terms()))
    cosines = texts.cosines(rows, [question.vectors[0], *message_question.topics])
    topics = question.calibration.slope * (cosines[:, 1:] - question.calibration.midpoint)
    columns = texts.index.columns_of(rows)
    best = np.zeros(len(rows))
    for place, query in enumerate(message_question.found.queries):
        text = question.subqueries[place].text
        lines = Lines(
            words=words,
            topics=topics[:, place],
            segments=around.runs,
            ask=columns["asks"],
            tell_time=columns["tells_time"],
            speakers=np.stack([columns["speaker"], columns["first_name"]], axis=1),
            period_fits=_period_fits(
                question.subqueries[place].text, columns["said_at"], message_question
            ),
        )
        chances = judges.chances(
            features_of(text, query, lines),
            compared=message_question.topics[place] is not None and ~np.isnan(lines.topics),
        )
        worth = IN_USE.part_worth if place else 1.0
        best = np.maximum(best, worth * query.substance * chances)
    return RankedLines(rows, best, cosines[:, 0])


def _spread(rows: Rows, scores: Floats, similarities: Floats) -> Rows:
    """Return the best seeds, few of those that are probably one text, said again and again.

    The same text has the same score and the same cosine.
    """
    # NaN differs from itself, and no cosine is this.
    near = np.where(np.isnan(similarities), -2.0, similarities)
    order = np.lexsort((near, scores))
    places = np.arange(len(order))
    begins = (np.diff(scores[order], prepend=np.nan) != 0) | (np.diff(near[order], prepend=0) != 0)
    within = places - np.maximum.accumulate(np.where(begins, places, 0))
    kept = np.sort(order[within < MAX_SAME_SEEDS])[:SEEDS]
    spread: Rows = rows[kept]
    return spread


def _period_fits(text: str, said_at: Rows, message_question: MessageQuestion) -> Floats:
    """Return how well the date of each line fits the periods that the text names."""
    periods = periods_asked(text, today=message_question.now.date())
    if not periods:
        return np.zeros(len(said_at))
    days, number = days_of(said_at, message_question.now.tzinfo or timezone.utc)
    fits = np.array([best_fit(periods, date.fromordinal(int(day))) for day in days])
    found: Floats = fits[number]
    return found


def similarities(question: Question, sent: Mapping[UUID, bytes | None]) -> dict[UUID, float]:
    """Return the exact cosines of vectors, as PostgreSQL sends them, to the whole question."""
    known = {key: vector for key, vector in sent.items() if vector is not None}
    if question.vectors[0] is None or not known:
        return {}
    whole = np.array(question.vectors[0], np.float64)
    own = vectors_from(list(known.values())).astype(np.float64)
    lengths = np.linalg.norm(own, axis=1) * np.linalg.norm(whole)
    if own.shape[1] != len(whole) or not lengths.all():
        return {}
    return dict(zip(known, (own @ whole / lengths).tolist(), strict=True))
