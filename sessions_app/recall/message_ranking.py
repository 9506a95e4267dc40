"""Rank the messages of a chat against a question, each in the context of its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from memories_app.ranking.facade import (
    Candidates,
    Question,
    Sample,
    Texts,
    joined,
    rank,
)
from memoryproject.foundation.retrieval.message_features import (
    SAME_QUESTION,
    Lines,
    chances,
    ends_as_question,
    everyday_words,
    features_of,
)
from memoryproject.foundation.retrieval.query import is_informative, text_without
from memoryproject.foundation.retrieval.relevance import (
    PART_WORTH,
    Floats,
    frequencies,
    weigh_words,
)
from memoryproject.foundation.retrieval.subqueries import QueryPart, best_fit, periods_asked
from sessions_app.models.messages import ASKING
from sessions_app.recall.conversation_lines import Line, lines_around, runs_of

# Limit of lines that are ranked with their context.
SEEDS = 40
# Limit of seeds that are the same text.
MAX_SAME_SEEDS = 4


@dataclass(frozen=True)
class RankedLines:
    """Lines in the order of the conversation, with the score of each."""

    lines: Sequence[Line]
    scores: Floats


def topics_of(parts: Sequence[QueryPart], sample: Sample | None) -> list[str]:
    """Return the text of each part without the words that occur everywhere in the conversation."""
    if sample is None:
        return [part.text for part in parts]
    known = [_without_repetitions(part, sample) for part in parts]
    return [
        text_without(
            part.text,
            everyday_words(part.terms, frequencies(part.terms, terms), len(terms)),
        )
        for part, terms in zip(parts, known, strict=True)
    ]


def _without_repetitions(part: QueryPart, sample: Sample) -> list[Collection[str]]:
    """Return the terms of the sampled lines that don't only ask the same.

    A question that is asked again and again doesn't make its words frequent.
    """
    telling = [term for term in part.terms if is_informative(term)]

    def repeats(terms: Collection[str]) -> bool:
        held = sum(not set(terms).isdisjoint(term.forms) for term in telling)
        return ASKING in terms and held >= SAME_QUESTION * max(len(telling), 1)

    return [terms for terms in sample.terms if not repeats(terms)]


def rank_messages(
    question: Question, texts: Texts, sample: Sample, candidates: Candidates, now: datetime
) -> RankedLines:
    """Return the lines that may answer the question, and those around them, with their scores.

    now: in the time zone whose days the question names.
    """
    together, sampled = joined([candidates])
    seeds = _seeds(together, rank(question, together, sampled))
    forms = [ASKING, *(form for term in question.terms for form in term.forms)]
    lines = lines_around(texts, seeds, forms, question.vectors, model=question.model)
    best = np.zeros(len(lines))
    if not lines:
        return RankedLines(lines, best)
    curve = question.calibration
    segments = np.array(runs_of(lines))
    speakers = [line.speaker for line in lines]
    for place, part in enumerate(question.parts):
        words = weigh_words(part.terms, _without_repetitions(part, sample))
        cosines = np.array([line.cosines[place] for line in lines], float)
        features = features_of(
            part.text,
            words,
            Lines(
                held=words.held_by([line.terms for line in lines]),
                topics=curve.slope * (cosines - curve.midpoint),
                segments=segments,
                speakers=speakers,
                period_fits=_period_fits(part.text, lines, now),
                ask=[ends_as_question(line.content) for line in lines],
            ),
        )
        own = chances(features, compared=~np.isnan(cosines))
        worth = PART_WORTH if place else 1.0
        best = np.maximum(best, worth * words.substance * own)
    return RankedLines(lines, best)


def _seeds(candidates: Candidates, scores: Floats) -> list[UUID]:
    """Return the best candidates, few of those that are one text, said again and again."""
    # The newest of equal ones: its answer is the one that holds.
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    same: dict[str, int] = {}
    seeds: list[UUID] = []
    for row in order:
        key = candidates.contents[row].casefold().rstrip(" .!?")
        same[key] = same.get(key, 0) + 1
        if same[key] <= MAX_SAME_SEEDS:
            seeds.append(candidates.ids[row])
        if len(seeds) == SEEDS:
            break
    return seeds


def _period_fits(text: str, lines: Sequence[Line], now: datetime) -> Floats:
    """Return how well the date of each line fits the periods that the text names."""
    periods = periods_asked(text, today=now.date())
    if not periods:
        return np.zeros(len(lines))
    days = [line.said_at.astimezone(now.tzinfo).date() for line in lines]
    return np.array([best_fit(periods, day) for day in days])
