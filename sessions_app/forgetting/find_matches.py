"""Search for memories and messages to forget, by words or by meaning."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from memories_app.models import Memory
from memories_app.visibility import memories_for_staff
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.replica import time_limit
from memoryproject.foundation.retrieval.query import with_words
from sessions_app.models import ForgottenKind, Message
from sessions_app.recall.facade import MEMORIES, MESSAGES, Viewer, recall

MAX_SHOWN = 100
# A search by meaning matches everything to some degree, so only the most similar are shown.
MAX_BY_MEANING = 50
MIN_SCORE = 0.35
MAX_SECONDS = 10

MEMORY, MESSAGE = str(ForgottenKind.MEMORY), str(ForgottenKind.MESSAGE)


@dataclass(frozen=True)
class Wanted:
    """The criteria of a search.

    ``kinds`` are those of memories and messages. ``since`` (inclusive) and ``until`` (exclusive)
    apply to the time of storing.
    """

    words: str
    kinds: tuple[str, ...] = (MEMORY, MESSAGE)
    by_meaning: bool = False
    chat_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Match:
    """A result; ``score`` is None if it was found by words."""

    kind: str
    key: UUID
    text: str
    at: datetime
    chat_id: UUID | None
    score: float | None = None


@dataclass(frozen=True)
class Matches:
    """The first results, and the total of each kind."""

    shown: list[Match]
    totals: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.totals.values())


def matches_find(wanted: Wanted, *, embedder: Embedder) -> Matches:
    """Return memories, then messages, the newest or the most similar first.

    Raises TooSlowError.
    """
    if wanted.by_meaning:
        found = _by_meaning(wanted, embedder)
        totals = {kind: sum(1 for each in found if each.kind == kind) for kind in wanted.kinds}
        return Matches(found[:MAX_SHOWN], totals)
    with time_limit(MAX_SECONDS):
        shown: list[Match] = []
        totals = {}
        for kind, rows in _by_words(wanted).items():
            totals[kind] = rows.count()
            room = MAX_SHOWN - len(shown)
            shown += [_match(kind, row) for row in rows[:room]] if room else []
    return Matches(shown, totals)


def matches_all(wanted: Wanted, *, embedder: Embedder, most: int) -> list[tuple[str, UUID]]:
    """Return kind and id of everything that ``matches_find`` counts, at most ``most``.

    Raises TooSlowError.
    """
    if wanted.by_meaning:
        return [(each.kind, each.key) for each in _by_meaning(wanted, embedder)][:most]
    keys: list[tuple[str, UUID]] = []
    with time_limit(MAX_SECONDS):
        for kind, rows in _by_words(wanted).items():
            room = most - len(keys)
            keys += [(kind, key) for key in rows.values_list("pk", flat=True)[:room]]
    return keys


def _by_words(wanted: Wanted) -> dict[str, QuerySet[Any]]:
    found: dict[str, QuerySet[Any]] = {}
    if MEMORY in wanted.kinds:
        memories = with_words(memories_for_staff(), wanted.words)
        memories = memories.filter(_narrowed(wanted, "created_at")).defer("terms")
        found[MEMORY] = memories.order_by("-created_at", "memory_id")
    if MESSAGE in wanted.kinds:
        messages = with_words(Message.objects.filter(revoked_at__isnull=True), wanted.words)
        messages = messages.filter(_narrowed(wanted, "received_at")).defer("terms")
        found[MESSAGE] = messages.order_by("-received_at", "-order_num")
    return found


def _narrowed(wanted: Wanted, field: str) -> Q:
    where = Q()
    if wanted.chat_id is not None:
        where &= Q(chat_id=wanted.chat_id)
    if wanted.since is not None:
        where &= Q(**{f"{field}__gte": wanted.since})
    if wanted.until is not None:
        where &= Q(**{f"{field}__lt": wanted.until})
    return where


def _by_meaning(wanted: Wanted, embedder: Embedder) -> list[Match]:
    """Search all memories and the messages of one chat, the same reach as recall."""
    found: list[Match] = []
    if MEMORY in wanted.kinds:
        found += _recalled(wanted, Viewer("staff"), MEMORIES, embedder)
    if MESSAGE in wanted.kinds and wanted.chat_id is not None:
        found += _recalled(wanted, Viewer("client", wanted.chat_id), MESSAGES, embedder)
    return found


def _recalled(wanted: Wanted, viewer: Viewer, source: str, embedder: Embedder) -> list[Match]:
    result = recall(
        query=wanted.words,
        viewer=viewer,
        embedder=embedder,
        top_k=MAX_BY_MEANING,
        min_similarity=MIN_SCORE,
        sources=[source],
        memories_where=_narrowed(wanted, "created_at"),
        messages_where=_narrowed(wanted, "received_at"),
        repeats=True,
    )
    chats = dict(
        Memory.objects.filter(pk__in=[hit.id for hit in result.hits]).values_list("pk", "chat_id")
    )
    return [
        Match(
            kind=MEMORY if hit.source == "memory" else MESSAGE,
            key=hit.id,
            text=hit.content,
            at=hit.created_at,
            chat_id=chats.get(hit.id, viewer.chat_id),
            score=hit.score,
        )
        for hit in result.hits
    ]


def _match(kind: str, row: Memory | Message) -> Match:
    at = row.created_at if isinstance(row, Memory) else row.received_at
    return Match(kind, row.pk, row.content, at, row.chat_id)
