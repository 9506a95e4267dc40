"""Which cards are due. Stored with what made them due, so that no crash loses one."""

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

# A worker was told when it was made due; the sweep takes up what is left after this.
TIME_FOR_WORKERS = timedelta(seconds=30)
AT_ONCE = 50
MAX_SWEPT = 5_000
# A card that can't be made is tried again after a minute, then after twice as long each time.
FIRST_WAIT = timedelta(minutes=1)
MAX_WAIT = timedelta(hours=12)


def cards_request(*, session_ids: Collection[UUID]) -> None:
    """Put on record that the cards of these sessions are to be made, or made again. Call it in
    the transaction that ends or changes them, with their rows locked."""
    if not session_ids:
        return
    now = timezone.now()
    known = CardWork.objects.filter(pk__in=list(session_ids))
    if known.update(token=uuid4(), due_at=now, attempts=0) < len(set(session_ids)):
        fresh = [CardWork(session_id=key, due_at=now) for key in dict.fromkeys(session_ids)]
        CardWork.objects.bulk_create(fresh, ignore_conflicts=True)
    transaction.on_commit(partial(_tell, list(session_ids)))


def cards_outdate(*, session_ids: Collection[UUID]) -> int:
    """What was said in these sessions has changed, or is gone: their cards go at once, and are
    made again. Of an active session only where it had one. Returns how many cards went.

    Call it in the transaction of the change, with the sessions' rows locked.
    """
    keys = list(session_ids)
    has_one = Q(Exists(MemoryCard.objects.filter(pk=OuterRef("pk"))))
    is_made = Q(card_work__isnull=False)
    ended = ~Q(status=SessionStatus.ACTIVE)
    due = ChatSession.objects.filter(ended | has_one | is_made, pk__in=keys)
    cards_request(session_ids=list(due.order_by("pk").values_list("pk", flat=True)))
    return cards_delete(session_ids=keys)


def session_grew(*, session: ChatSession) -> None:
    """Messages were added at its end. An ended session has a card, which is to be made again;
    that of an active one the sweep finds, off the way of the answer."""
    if session.status != SessionStatus.ACTIVE:
        cards_request(session_ids=[session.pk])


def cards_sweep(*, enqueue: Callable[[Sequence[UUID]], None], now: datetime | None = None) -> int:
    """Enqueue what is due and was made by nobody, and the cards of active sessions that went
    on; returns how many. Safe to run at any time, by several at once."""
    before = (now or timezone.now()) - TIME_FOR_WORKERS
    left = CardWork.objects.filter(due_at__lt=before).order_by("due_at")
    keys = [*left.values_list("pk", flat=True)[:MAX_SWEPT], *_grown()]
    for start in range(0, len(keys), AT_ONCE):
        enqueue(keys[start : start + AT_ONCE])
    return len(keys)


def card_put_off(*, session_id: UUID, now: datetime | None = None) -> None:
    """The card couldn't be made: it is due again later, so that it keeps none of the others
    waiting."""
    with transaction.atomic():
        work = CardWork.objects.select_for_update(no_key=True).filter(pk=session_id).first()
        if work is None:
            return
        wait = min(FIRST_WAIT * 2 ** min(work.attempts, 20), MAX_WAIT)
        work.attempts += 1
        work.due_at = (now or timezone.now()) + wait
        work.save(update_fields=["attempts", "due_at"])


def _grown() -> list[UUID]:
    """Active sessions with a card that have had messages since."""
    older = MemoryCard.objects.filter(pk=OuterRef("pk"), last_order__lt=OuterRef("message_counter"))
    active = ChatSession.objects.filter(status=SessionStatus.ACTIVE, message_counter__gt=0)
    grown = active.filter(Exists(older), card_work__isnull=True)
    return list(grown.values_list("pk", flat=True)[:MAX_SWEPT])


def _tell(session_ids: list[UUID]) -> None:
    for receiver, result in cards_due.send_robust(sender=CardWork, session_ids=session_ids):
        if isinstance(result, Exception):
            # The sweep finds them.
            logger.error("%r failed for %d due cards.", receiver, len(session_ids), exc_info=result)
