"""Who learns from a chat's turns: one worker at a time, in the turns' order, by a lease."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from memoryproject.lib.liveness import owner_is_gone, this_process
from memoryproject.lib.stored_errors import ErrorText
from sessions_app.models import ExtractionWork, Message, Turn
from sessions_app.models.turns import TurnState
from sessions_app.reading import is_knowledge
from sessions_app.services.leases import LEASE, LeaseLostError

logger = logging.getLogger(__name__)

# After a failure: the model server is down or overloaded.
WAITS = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10), timedelta(hours=1))
MAX_ATTEMPTS = len(WAITS) + 1
DIED = ErrorText("worker_died")


@dataclass(frozen=True)
class ExtractionLease:
    """The right to learn from one turn. ``attempt`` counts from 1."""

    turn_id: int
    token: UUID
    attempt: int

    def renew(self) -> None:
        """Hold on for another while. Raises LeaseLostError."""
        if not self._held().update(lease_until=timezone.now() + LEASE):
            raise self._lost()

    def lock(self) -> None:
        """Keep the lease until the transaction ends. Raises LeaseLostError."""
        if self._held().select_for_update(no_key=True).first() is None:
            raise self._lost()

    def finish(self, outcome: str) -> None:
        """It is done."""
        self._end(due=False, outcome=outcome, error="", done_at=timezone.now())

    def give_up(self, error: str) -> None:
        """It can't be done: staff see why."""
        logger.error("Turn %s is not learned from: %s", self.turn_id, error)
        self._end(due=False, error=error, done_at=timezone.now())

    def postpone(self, error: str) -> None:
        """It failed: try again, later each time, and not for ever."""
        if self.attempt >= MAX_ATTEMPTS:
            self.give_up(error)
        else:
            self._end(error=error, not_before=timezone.now() + WAITS[self.attempt - 1])

    def _end(self, **changes: object) -> None:
        self._held().update(lease_token=None, lease_owner="", lease_until=None, **changes)

    def _held(self) -> QuerySet[ExtractionWork]:
        return ExtractionWork.objects.filter(pk=self.turn_id, lease_token=self.token)

    def _lost(self) -> LeaseLostError:
        return LeaseLostError(f"learning from turn {self.turn_id} is no longer ours")


def extraction_request(turn: Turn) -> bool:
    """Put on record that a turn is to be learned from; False where there is nothing to read:
    memory is off, or the message is a command or no text. Call it in the transaction that
    stores the answer."""
    message = turn.message
    if turn.session_id is None or message is None or not is_knowledge(message):
        return False
    ExtractionWork.objects.get_or_create(turn=turn)
    return True


def extraction_repeat(message: Message) -> None:
    """A message has another text now: where its turn was learned from, that is due again."""
    turn = Turn.objects.filter(message=message).first()
    while turn is not None and turn.state == TurnState.MERGED:
        turn = Turn.objects.filter(turn_id=turn.context.get("merged_into")).first()
    if turn is not None:
        # Whoever is at it loses the lease: he has read the old text.
        ExtractionWork.objects.filter(turn=turn).update(
            due=True, attempts=0, lease_token=None, not_before=None, error="", outcome=""
        )


def extraction_claim(chat_id: UUID, *, now: datetime | None = None) -> ExtractionLease | None:
    """Take the oldest turn of the chat that is due, or None: none is due, it isn't time yet,
    or somebody is at it. One after the other, because the newer fact counts."""
    now = now or timezone.now()
    while work := _oldest(chat_id):
        if is_held(work, now) or (work.not_before and work.not_before > now):
            return None
        lease = ExtractionLease(work.pk, uuid.uuid4(), work.attempts + 1)
        unchanged = ExtractionWork.objects.filter(
            pk=work.pk, due=True, lease_token=work.lease_token, attempts=work.attempts
        )
        claimed = unchanged.update(
            attempts=F("attempts") + 1,
            lease_token=lease.token,
            lease_owner=this_process(),
            lease_until=now + LEASE,
        )
        if not claimed:
            return None
        if lease.attempt <= MAX_ATTEMPTS:
            return lease
        lease.give_up(DIED)
    return None


def _oldest(chat_id: UUID) -> ExtractionWork | None:
    due = ExtractionWork.objects.filter(turn__chat_id=chat_id, due=True)
    return due.order_by("turn_id").first()


def is_held(work: ExtractionWork, now: datetime) -> bool:
    """Whether a living worker has the work."""
    if work.lease_token is None or work.lease_until is None or work.lease_until <= now:
        return False
    return not owner_is_gone(work.lease_owner)


def extractions_sweep(*, enqueue: Callable[[UUID], None], now: datetime | None = None) -> int:
    """Enqueue the chats in which something is due with nobody at it; returns how many. Safe
    to run at any time, by several at once."""
    now = now or timezone.now()
    due = ExtractionWork.objects.filter(due=True)
    ready = due.filter(Q(not_before__isnull=True) | Q(not_before__lte=now))
    enqueued = 0
    chats = ready.order_by("turn__chat_id").values_list("turn__chat_id", flat=True).distinct()
    for chat_id in chats:
        work = _oldest(chat_id)
        if work is not None and not is_held(work, now):
            enqueue(chat_id)
            enqueued += 1
    return enqueued
