"""The search box of the list of memories: recall with the visibility of staff."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Case, F, FloatField, Q, QuerySet, Value, When
from django.http import HttpRequest

from memories_app.models import Memory
from memories_app.review.presentation import day_of
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.retrieval.query import with_words
from memoryproject.foundation.text.uuids import uuid_or_none
from sessions_app.conversations.facade import chat_at
from sessions_app.recall.facade import MEMORIES, Hit, Viewer, recall

MAX_HITS = 100
# Lower scores are chance; a turn recalls from RECALL_MIN_SIMILARITY on.
MIN_SCORE = 0.1
# So many are shown however low their scores are: the nearest that there is says something, too.
NEAREST = 5
MAX_LENGTH = 2_000
# Partial words are searched in so many of the newest memories.
RECENT = 5_000
_ID_BEGINS = re.compile("[0-9a-f]{8,32}")
# Parameters of the list's address that are no filters.
_NOT_FILTERS = {"q", "p", "o", "e", "all"}


@dataclass(frozen=True)
class SearchNote:
    """The remarks of the page about a search.

    ``by_meaning``: recall was used, so there are scores. ``degraded``: a part of recall failed.
    ``by_words``: memories that aren't recalled were searched, too, by their words. ``in_part``:
    nothing matched, and these of the newest memories contain the text as a part of a word.
    ``only_near``: nothing matched, and these are the nearest.
    """

    by_meaning: bool = False
    degraded: bool = False
    by_words: bool = False
    in_part: bool = False
    only_near: bool = False


def search_memories(
    request: HttpRequest, queryset: QuerySet[Memory], term: str, embedder: Embedder
) -> tuple[QuerySet[Any], SearchNote]:
    """Return the matching rows, best first, with ``score`` and ``similarity`` if recalled.

    A whole id, or the beginning of a memory's id or a chat's address, finds its memories.
    """
    term = term.replace("\x00", " ").strip()[:MAX_LENGTH]
    if not term:
        return _scored(queryset, []), SearchNote()
    if (key := uuid_or_none(term)) is not None:
        by_id = Q(pk=key) | Q(chat_id=key) | Q(source_message_id=key)
        return _scored(queryset.filter(by_id), []), SearchNote()
    if (began := _id_began(queryset, term)) is not None:
        return _scored(began, []), SearchNote()
    if "@" in term and " " not in term:
        chat = chat_at(term)
        found = queryset.none() if chat is None else queryset.filter(chat_id=chat.pk)
        return _scored(found, []), SearchNote()
    state = request.GET.get("state", "")
    hits, degraded = (
        ([], False) if state in _UNRECALLED else _recalled(request, queryset, term, embedder)
    )
    if _means_all(request):
        hits = [hit for hit in hits if hit.score >= MIN_SCORE]
    found = Q(pk__in=[hit.id for hit in hits if hit.score >= MIN_SCORE])
    if state:
        found |= Q(pk__in=with_words(queryset.order_by(), term).values("pk"))
    note = SearchNote(by_meaning=state not in _UNRECALLED, degraded=degraded, by_words=bool(state))
    if not queryset.filter(found).order_by().exists():
        part = queryset.filter(_in_part(queryset, term))
        if not hits or part.order_by().exists():
            return _scored(part, []), SearchNote(degraded=degraded, in_part=True)
        note = replace(note, only_near=True)
    return _scored(queryset.filter(found | Q(pk__in=[hit.id for hit in hits])), hits), note


def _means_all(request: HttpRequest) -> bool:
    """Say whether something is done with all that was found, without looking at each row.

    That isn't done with memories that are shown only because they are the nearest.
    """
    ticked = bool(request.POST.getlist("_selected_action"))
    return request.method == "POST" and (not ticked or request.POST.get("select_across") == "1")


def _id_began(queryset: QuerySet[Memory], term: str) -> QuerySet[Memory] | None:
    """Return the memories whose id begins with the text; people see such ids on WhatsApp.

    Return None if the text is no beginning of an id, or there is no such memory.
    """
    digits = term.replace("-", "").lower()
    if not _ID_BEGINS.fullmatch(digits):
        return None
    first, last = (UUID(digits.ljust(32, fill)) for fill in "0f")
    found = queryset.filter(pk__range=(first, last))
    return found if found.order_by().exists() else None


def _in_part(queryset: QuerySet[Memory], term: str) -> Q:
    """Return a filter for the newest memories that contain this text; no index can find it."""
    newest = queryset.order_by("-created_at").values("pk")[:RECENT]
    return Q(pk__in=newest, content__icontains=term)


# Filters that exclude everything that recall would find.
_UNRECALLED = {"proposed", "superseded", "expired"}


def _recalled(
    request: HttpRequest, queryset: QuerySet[Memory], term: str, embedder: Embedder
) -> tuple[list[Hit], bool]:
    narrowed = set(request.GET) - _NOT_FILTERS - {"state"}
    result = recall(
        query=term,
        viewer=Viewer("staff"),
        embedder=embedder,
        top_k=MAX_HITS,
        min_similarity=0.0,
        sources=(MEMORIES,),
        memories_where=Q(pk__in=queryset.order_by().values("pk")) if narrowed else None,
        # The user waits for the page, and results below this score are not relevant.
        repeats=True,
        as_of=day_of(request),
    )
    hits = [
        hit for place, hit in enumerate(result.hits) if place < NEAREST or hit.score >= MIN_SCORE
    ]
    return hits, result.degraded


def _scored(queryset: QuerySet[Memory], hits: list[Hit]) -> QuerySet[Any]:
    """Sort by score; rows without a score come last, in the list's own order."""
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
