"""Find the chats that go ahead of strangers in the queue: the owner's, and those that are known.

A flood of new numbers fills the queue, which is first in, first out. Workers look here before each
answer to a stranger, so that the owner and known people wait for at most one answer.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import cache
from uuid import UUID

from django.db.models import DateTimeField, Exists, OuterRef, Q

from memoryproject.foundation.compiled_sql import Given, compiled, read_prepared
from sessions_app.models import ChatAccess, ChatAddress, Turn
from sessions_app.models.limits import Standing
from sessions_app.models.turns import TurnState

# A chat that was answered so long ago is known; strangers of a flood begin now.
KNOWN_AFTER = timedelta(hours=3)
# So many are taken at once; the next look finds the others.
MAX_AHEAD = 20


def is_known(chat_id: UUID, *, godfather: Collection[str], now: datetime) -> bool:
    """Return whether the chat with a waiting turn is the owner's or known.

    Known is a chat that staff allow, and one that had an answer some hours ago.
    """
    pending = Turn.objects.filter(_known(now - KNOWN_AFTER, godfather), state=TurnState.PENDING)
    return pending.filter(chat=chat_id).exists()


def known_chats_waiting(*, godfather: Collection[str], now: datetime) -> list[UUID]:
    """Return the known chats whose next turn waits for a worker, the longest waiting first."""
    statement = _ahead(frozenset(godfather))
    rows = read_prepared(statement, {"now": now, "known_before": now - KNOWN_AFTER})
    return list(dict.fromkeys(chat_id for (chat_id,) in rows))[:MAX_AHEAD]


@cache
def _ahead(godfather: frozenset[str]) -> str:
    """Return how ``known_chats_waiting`` reads, which is done before each answer."""
    now = Given("now", DateTimeField())
    running = Turn.objects.filter(chat=OuterRef("chat"), state=TurnState.RUNNING)
    ready = Q(not_before__isnull=True) | Q(not_before__lte=now)
    known = _known(Given("known_before", DateTimeField()), godfather)
    waiting = Turn.objects.filter(ready, known, ~Exists(running), state=TurnState.PENDING)
    return compiled(waiting.order_by("id").values_list("chat_id")[: MAX_AHEAD * 5])


def _known(before: datetime | Given, godfather: Collection[str]) -> Q:
    answered = Turn.objects.filter(
        chat=OuterRef("chat"), state=TurnState.SENT, created_at__lt=before
    )
    allowed = ChatAccess.objects.filter(chat=OuterRef("chat"), standing=Standing.ALLOWED)
    owners = ChatAddress.objects.filter(
        chat=OuterRef("chat"), left_at=None, chat__is_group=False, address__in=sorted(godfather)
    )
    return Q(Exists(owners)) | Q(Exists(allowed)) | Q(Exists(answered))
