"""The search box of the list of memories: the product's recall, as staff see everything."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.http import HttpRequest

from memories_app.models import Memory
from memories_app.search.facade import memories_with_words
from memoryproject.foundation.integrations.embedders.base import Embedder
from sessions_app.conversations.facade import chat_at
from sessions_app.recall.facade import MEMORIES, Hit, Viewer, recall

MAX_HITS = 100
# Below this nothing but chance is left; what a turn recalls scores RECALL_MIN_SIMILARITY.
MIN_SCORE = 0.1
MAX_LENGTH = 2_000
# Parts of words are looked for in so many of the newest memories.
RECENT = 5_000
_ID_BEGINS = re.compile("[0-9a-f]{8,32}")
# Parts of the list's address that narrow nothing.
_NOT_FILTERS = {"q", "p", "o", "e", "all"}


@dataclass(frozen=True)
class SearchNote:
    """What the page says of a search. ``by_meaning``: recall was asked, so that there are
    scores; ``degraded``: a part of it failed; ``by_words``: also memories that aren't recalled
    were looked for, by their words; ``in_part``: nothing fitted, and these of the newest hold the
    text as a part of a word."""

    by_meaning: bool = False
    degraded: bool = False
    by_words: bool = False
    in_part: bool = False


def search_memories(
    request: HttpRequest, queryset: QuerySet[Memory], asked: str, embedder: Embedder
) -> tuple[QuerySet[Any], SearchNote]:
    """The rows of the list that fit, best first, with ``score`` and ``similarity`` where they
    were recalled. A whole id, the beginning of a memory's or a chat's address finds what has it."""
    asked = asked.replace("\x00", " ").strip()[:MAX_LENGTH]
    if not asked:
        return _scored(queryset, []), SearchNote()
    with suppress(ValueError):
        key = UUID(asked)
        mine = Q(pk=key) | Q(chat_id=key) | Q(source_message_id=key)
        return _scored(queryset.filter(mine), []), SearchNote()
    if (began := _id_began(queryset, asked)) is not None:
        return _scored(began, []), SearchNote()
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
    if not hits and not queryset.filter(found).order_by().exists():
        part = queryset.filter(_in_part(queryset, asked))
        return _scored(part, []), SearchNote(degraded=degraded, in_part=True)
    note = SearchNote(by_meaning=state not in _UNRECALLED, degraded=degraded, by_words=bool(state))
    return _scored(queryset.filter(found), hits), note


def _id_began(queryset: QuerySet[Memory], asked: str) -> QuerySet[Memory] | None:
    """Memories whose id begins so, as people are shown ids on WhatsApp; None for what is no
    beginning, or of none."""
    digits = asked.replace("-", "").lower()
    if not _ID_BEGINS.fullmatch(digits):
        return None
    first, last = (UUID(digits.ljust(32, fill)) for fill in "0f")
    found = queryset.filter(pk__range=(first, last))
    return found if found.order_by().exists() else None


def _in_part(queryset: QuerySet[Memory], asked: str) -> Q:
    """The newest with this very text, if only as a part of a word: no index finds it."""
    newest = queryset.order_by("-created_at").values("pk")[:RECENT]
    return Q(pk__in=newest, content__icontains=asked)


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
        top_k=MAX_HITS,
        min_similarity=MIN_SCORE,
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
