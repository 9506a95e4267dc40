"""The search box of the list of memories: the product's recall, as staff see everything."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.http import HttpRequest

from memories_app.models import Memory
from memories_app.selectors import memories_with_words
from memoryproject.integrations.embedders.base import Embedder
from sessions_app.chat_selectors import chat_at
from sessions_app.recall import MEMORIES, Hit, Viewer, recall

MOST_HITS = 100
# Below this nothing but chance is left; what a turn recalls scores RECALL_MIN_SIMILARITY.
LEAST_SCORE = 0.1
LONGEST = 2_000
# Parts of the list's address that narrow nothing.
_NOT_FILTERS = {"q", "p", "o", "e", "all"}


@dataclass(frozen=True)
class SearchNote:
    """What the page says of a search. ``by_meaning``: recall was asked, so that there are
    scores; ``degraded``: a part of it failed; ``by_words``: also memories that aren't recalled
    were looked for, by their words."""

    by_meaning: bool = False
    degraded: bool = False
    by_words: bool = False


def search_memories(
    request: HttpRequest, queryset: QuerySet[Memory], asked: str, embedder: Embedder
) -> tuple[QuerySet[Any], SearchNote]:
    """The rows of the list that fit, best first, with ``score`` and ``similarity`` where they
    were recalled. A whole id or a chat's address finds what has it."""
    asked = asked.replace("\x00", " ").strip()[:LONGEST]
    if not asked:
        return _scored(queryset, []), SearchNote()
    with suppress(ValueError):
        key = UUID(asked)
        mine = Q(pk=key) | Q(chat_id=key) | Q(source_message_id=key)
        return _scored(queryset.filter(mine), []), SearchNote()
    if "@" in asked and " " not in asked:
        chat = chat_at(asked)
        found = queryset.none() if chat is None else queryset.filter(chat_id=chat.pk)
        return _scored(found, []), SearchNote()
    state = request.GET.get("state", "")
    hits, degraded = (
        ([], False) if state in _UNRECALLED else _recalled(request, queryset, asked, embedder)
    )
    found = Q(pk__in=[hit.id for hit in hits])
    if state:
        found |= Q(pk__in=memories_with_words(queryset.order_by(), asked).values("pk"))
    note = SearchNote(by_meaning=state not in _UNRECALLED, degraded=degraded, by_words=bool(state))
    return _scored(queryset.filter(found), hits), note


# Filters under which nothing is shown that recall would find.
_UNRECALLED = {"proposed", "superseded", "expired"}


def _recalled(
    request: HttpRequest, queryset: QuerySet[Memory], asked: str, embedder: Embedder
) -> tuple[list[Hit], bool]:
    narrowed = set(request.GET) - _NOT_FILTERS - {"state"}
    result = recall(
        query=asked,
        viewer=Viewer("staff"),
        embedder=embedder,
        top_k=MOST_HITS,
        min_similarity=LEAST_SCORE,
        sources=(MEMORIES,),
        memories_where=Q(pk__in=queryset.order_by().values("pk")) if narrowed else None,
        # People wait for the page; what is that far scores below anything they look for.
        sure=False,
    )
    return result.hits, result.degraded


def _scored(queryset: QuerySet[Memory], hits: list[Hit]) -> QuerySet[Any]:
    """Best first; what has no score comes last, in the list's own order."""
    scores = [When(pk=hit.id, then=Value(hit.score)) for hit in hits]
    cosines = [
        When(pk=hit.id, then=Value(hit.similarity)) for hit in hits if hit.similarity is not None
    ]
    scored = queryset.annotate(
        score=Case(*scores, output_field=FloatField()),
        similarity=Case(*cosines, output_field=FloatField()),
    )
    if not hits:
        return scored
    return scored.order_by(F("score").desc(nulls_last=True), "-created_at", "memory_id")
