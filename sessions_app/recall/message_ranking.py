"""Rank the messages of a chat against a question, each in the context of its neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, NullIf

from memories_app.models import Memory, ProposalKind, ProposalMemory, ProposalState
from memories_app.ranking import Candidates, Question, Sample, Texts, joined, rank
from memories_app.visibility import contents_then
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
from sessions_app.models import Chat
from sessions_app.models.chats import GODFATHER
from sessions_app.models.messages import ASKING
from sessions_app.recall.conversation_lines import Line, lines_around, runs_of
from sessions_app.recall.hits import FactTimes, Hit, Viewer, memory_about

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
            part.text, everyday_words(part.terms, frequencies(part.terms, terms), len(terms))
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


# Read the memories that a recall found, as hits.


def read_memories(
    visible: QuerySet[Memory],
    scores: Mapping[UUID, float],
    near: Mapping[UUID, float],
    *,
    viewer: Viewer,
    as_of: datetime | None,
) -> Iterator[Hit]:
    """Yield these memories in the order of ``scores``, as far as the viewer may see them now.

    ``visible``: those of them that the viewer may see. ``near``: the cosines that are known.
    ``as_of``: in their words of then.
    """
    rows = visible.order_by().values_list(
        "pk",
        "content",
        "created_at",
        "type",
        _client(viewer),
        "chat_id",
        "source",
        "said_at",
        "valid_from",
        "valid_until",
        ArraySubquery(_newer()),
    )
    found = {key: rest for key, *rest in rows}
    then = {} if as_of is None else contents_then(list(found), as_of)
    for key, score in scores.items():
        if key not in found:
            continue
        content, created_at, kind, client, chat, source, *times, newer = found[key]
        about = memory_about(
            kind,
            client=client,
            source=source,
            is_own=chat is not None and chat == viewer.chat_id,
            times=FactTimes(*times),
            newer=newer,
        )
        cosine = near.get(key)
        known = None if cosine is None or cosine != cosine else float(cosine)
        yield Hit("memory", key, then.get(key, content), score, known, created_at, about)


def _newer() -> QuerySet[Any]:
    """Return the ids of the newer memories of which staff are asked whether they replace it."""
    open_ones = ProposalMemory.objects.filter(
        number=1,
        proposal__kind=ProposalKind.REPLACE,
        proposal__state=ProposalState.OPEN,
        proposal__parts__memory=OuterRef("pk"),
    )
    return open_ones.exclude(memory=OuterRef("pk")).values_list("memory_id")


def _client(viewer: Viewer) -> Combinable:
    """Return the name of a memory's chat for the owner, "" for others and for the own chat.

    It is the name that staff gave, else WhatsApp's, or the chat's id.
    """
    if viewer.user_role != GODFATHER:
        return Value("")
    chats = Chat.objects.filter(pk=OuterRef("chat_id"))
    if viewer.chat_id is not None:
        chats = chats.exclude(pk=viewer.chat_id)
    named = [NullIf(name, Value("")) for name in ("staff_name", "client_name")]
    return Coalesce(Subquery(chats.values_list(Coalesce(*named, "whatsapp_chat"))), Value(""))
