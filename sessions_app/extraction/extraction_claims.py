"""Claim the work of learning from a chat's turns, in the turns' order."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from memoryproject.foundation.errors.stored_errors import ErrorText, error_text
from memoryproject.foundation.leases import Lease
from sessions_app.conversations.message_text import is_knowledge
from sessions_app.limits.intake import LimitReachedError
from sessions_app.models import ExtractionWork, Message, Turn, TurnState

logger = logging.getLogger(__name__)

# The delays after failures: the model server is down or overloaded.
WAITS = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10), timedelta(hours=1))
MAX_ATTEMPTS = len(WAITS) + 1
DIED = ErrorText("worker_died")
NOT_LEARNED = "not learned from: the chat isn't answered"


@dataclass(frozen=True)
class ExtractionLease(Lease[ExtractionWork]):
    """The right to learn from one turn."""

    @property
    def turn_id(self) -> int:
        return self.row.pk

    @property
    def attempt(self) -> int:
        """Return the number of this attempt, counted from 1."""
        return self.row.attempts + 1

    def finish(self, outcome: str) -> None:
        """Store the outcome and end the work."""
        self.release(due=False, outcome=outcome, error="", done_at=timezone.now())

    def give_up(self, error: str) -> None:
        """End the work with an error that staff see."""
        logger.error("Turn %s is not learned from: %s", self.turn_id, error)
        self.release(due=False, error=error, done_at=timezone.now())

    def wait(self, limit: LimitReachedError) -> None:
        """Leave the work until the chat's limit ends, which doesn't count as an attempt.

        A chat that isn't answered at all is not learned from.
        """
        if limit.until is None:
            self.finish(NOT_LEARNED)
        else:
            before = F("attempts") - 1
            self.release(error=error_text(limit), not_before=limit.until, attempts=before)

    def postpone(self, error: str) -> None:
        """Store a failure; the delay grows each time, up to a maximum number of attempts."""
        if self.attempt >= MAX_ATTEMPTS:
            self.give_up(error)
        else:
            self.release(error=error, not_before=timezone.now() + WAITS[self.attempt - 1])


def extraction_request(turn: Turn) -> bool:
    """Mark that a turn should be learned from; return False if there is nothing to read.

    That is the case if memory is off, or the message is a command or no text. Call it in the
    transaction that stores the answer.
    """
    message = turn.message
    if turn.session_id is None or message is None or not is_knowledge(message):
        return False
    ExtractionWork.objects.get_or_create(turn=turn)
    return True


def extraction_repeat(message: Message) -> None:
    """Mark a turn as due again after the text of its message has changed."""
    turn = Turn.objects.filter(message=message).first()
    while turn is not None and turn.state == TurnState.MERGED:
        turn = Turn.objects.filter(turn_id=turn.context.get("merged_into")).first()
    if turn is not None:
        # A worker that holds the lease loses it, because it has read the old text.
        ExtractionWork.objects.filter(turn=turn).update(
            due=True, attempts=0, lease_token=None, not_before=None, error="", outcome=""
        )


def extraction_claim(chat_id: UUID, *, now: datetime | None = None) -> ExtractionLease | None:
    """Claim the oldest turn of the chat that is due.

    Returns None if none is due, it has to wait, or another worker holds it. Turns are claimed in
    order, because the newer fact counts.
    """
    now = now or timezone.now()
    while work := _oldest(chat_id):
        if work.not_before and work.not_before > now:
            return None
        unchanged = ExtractionWork.objects.filter(due=True, attempts=work.attempts)
        token = unchanged.claim(work, now=now, attempts=F("attempts") + 1)
        if token is None:
            return None
        lease = ExtractionLease(work, token)
        if lease.attempt <= MAX_ATTEMPTS:
            return lease
        lease.give_up(DIED)
    return None


def _oldest(chat_id: UUID) -> ExtractionWork | None:
    due = ExtractionWork.objects.filter(turn__chat_id=chat_id, due=True)
    return due.order_by("turn_id").first()


def extractions_abandoned(now: datetime) -> list[UUID]:
    """Return the chats in which work is due and that no worker holds."""
    due = ExtractionWork.objects.filter(due=True)
    ready = due.filter(Q(not_before__isnull=True) | Q(not_before__lte=now))
    found = due.filter(turn__chat_id__in=ready.values("turn__chat_id"))
    # The same order as in _oldest.
    oldest = found.order_by("turn__chat_id", "turn_id").distinct("turn__chat_id")
    works = oldest.annotate(chat_id=F("turn__chat_id")).abandoned(now)
    return [work.chat_id for work in works]
