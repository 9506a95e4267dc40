"""Find the chats that go ahead of strangers in the queue: the owner's, and those that are known.

A flood of new numbers fills the queue, which is first in, first out. Workers look here before each
answer to a stranger, so that the owner and known people wait for at most one answer.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

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
    running = Turn.objects.filter(chat=OuterRef("chat"), state=TurnState.RUNNING)
    ready = Q(not_before__isnull=True) | Q(not_before__lte=now)
    known = _known(now - KNOWN_AFTER, godfather)
    waiting = Turn.objects.filter(ready, known, ~Exists(running), state=TurnState.PENDING)
    chat_ids = waiting.order_by("id").values_list("chat_id", flat=True)[: MAX_AHEAD * 5]
    return list(dict.fromkeys(chat_ids))[:MAX_AHEAD]


def _known(before: datetime, godfather: Collection[str]) -> Q:
    answered = Turn.objects.filter(
        chat=OuterRef("chat"), state=TurnState.SENT, created_at__lt=before
    )
    allowed = ChatAccess.objects.filter(chat=OuterRef("chat"), standing=Standing.ALLOWED)
    owners = ChatAddress.objects.filter(
        chat=OuterRef("chat"), left_at=None, chat__is_group=False, address__in=sorted(godfather)
    )
    return Q(Exists(owners)) | Q(Exists(allowed)) | Q(Exists(answered))
