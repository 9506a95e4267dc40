"""Queue the session cards that are due.

A request is stored with the change that caused it, so that a crash loses none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from cards_app.models import MemoryCard
from cards_app.services.cards import cards_delete
from sessions_app.models import CardWork, ChatSession
from sessions_app.models.sessions import SessionStatus
from sessions_app.signals import cards_due

logger = logging.getLogger(__name__)

# A worker was notified when the card became due; after this delay the sweep takes what is left.
TIME_FOR_WORKERS = timedelta(seconds=30)
AT_ONCE = 50
MAX_SWEPT = 5_000
# A card that fails is retried after a minute, then after twice as long each time.
FIRST_WAIT = timedelta(minutes=1)
MAX_WAIT = timedelta(hours=12)


def cards_request(*, session_ids: Collection[UUID]) -> None:
    """Record that the cards of these sessions are due.

    Call it in the transaction that ends or changes the sessions, with their rows locked.
    """
    if not session_ids:
        return
    now = timezone.now()
    known = CardWork.objects.filter(pk__in=list(session_ids))
    if known.update(token=uuid4(), due_at=now, attempts=0) < len(set(session_ids)):
        fresh = [CardWork(session_id=key, due_at=now) for key in dict.fromkeys(session_ids)]
        CardWork.objects.bulk_create(fresh, ignore_conflicts=True)
    transaction.on_commit(partial(_send_cards_due, list(session_ids)))


def cards_outdate(*, session_ids: Collection[UUID]) -> int:
    """Delete the cards of these sessions at once and queue new ones; return how many were deleted.

    Call it after messages of the sessions were changed or deleted. An active session gets a new
    card only if it had one.

    Call it in the transaction of the change, with the sessions' rows locked.
    """
    keys = list(session_ids)
    has_one = Q(Exists(MemoryCard.objects.filter(pk=OuterRef("pk"))))
    is_made = Q(card_work__isnull=False)
    ended = ~Q(status=SessionStatus.ACTIVE)
    due = ChatSession.objects.filter(ended | has_one | is_made, pk__in=keys)
    cards_request(session_ids=list(due.order_by("pk").values_list("pk", flat=True)))
    return cards_delete(session_ids=keys)


def cards_sweep(*, enqueue: Callable[[Sequence[UUID]], None], now: datetime | None = None) -> int:
    """Enqueue due cards that no worker made, and outdated cards of active sessions.

    Returns how many. Several processes can run it at the same time.
    """
    before = (now or timezone.now()) - TIME_FOR_WORKERS
    left = CardWork.objects.filter(due_at__lt=before).order_by("due_at")
    keys = [*left.values_list("pk", flat=True)[:MAX_SWEPT], *_grown()]
    for start in range(0, len(keys), AT_ONCE):
        enqueue(keys[start : start + AT_ONCE])
    return len(keys)


def card_put_off(*, session_id: UUID, now: datetime | None = None) -> None:
    """Postpone a card that failed, so that it doesn't delay the others."""
    with transaction.atomic():
        work = CardWork.objects.select_for_update(no_key=True).filter(pk=session_id).first()
        if work is None:
            return
        wait = min(FIRST_WAIT * 2 ** min(work.attempts, 20), MAX_WAIT)
        work.attempts += 1
        work.due_at = (now or timezone.now()) + wait
        work.save(update_fields=["attempts", "due_at"])


def _grown() -> list[UUID]:
    """Return the active sessions that got messages after their card was made."""
    older = MemoryCard.objects.filter(pk=OuterRef("pk"), last_order__lt=OuterRef("message_counter"))
    active = ChatSession.objects.filter(status=SessionStatus.ACTIVE, message_counter__gt=0)
    grown = active.filter(Exists(older), card_work__isnull=True)
    return list(grown.values_list("pk", flat=True)[:MAX_SWEPT])


def _send_cards_due(session_ids: list[UUID]) -> None:
    for receiver, result in cards_due.send_robust(sender=CardWork, session_ids=session_ids):
        if isinstance(result, Exception):
            # The sweep finds them.
            logger.error("%r failed for %d due cards.", receiver, len(session_ids), exc_info=result)
