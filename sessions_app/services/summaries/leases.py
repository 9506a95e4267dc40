"""Who makes a session's summaries: one worker at a time, by a lease that ends."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from memoryproject.lib.liveness import owner_is_gone, this_process
from sessions_app.models import SummaryWork
from sessions_app.services.leases import LEASE, LeaseLostError

# After a failure: the model server is down or overloaded.
WAITS = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))


@dataclass(frozen=True)
class SummaryLease:
    """The right to make a session's summaries."""

    session_id: UUID
    token: UUID

    def renew(self) -> None:
        """Hold on for another while. Raises LeaseLostError."""
        held = SummaryWork.objects.filter(pk=self.session_id, lease_token=self.token)
        if not held.update(lease_until=timezone.now() + LEASE):
            raise LeaseLostError(f"the summaries of {self.session_id} are no longer ours")

    def lock(self) -> SummaryWork:
        """The work, locked until the transaction ends. Raises LeaseLostError."""
        held = SummaryWork.objects.select_for_update(no_key=True)
        work = held.filter(pk=self.session_id, lease_token=self.token).first()
        if work is None:
            raise LeaseLostError(f"the summaries of {self.session_id} are no longer ours")
        return work

    def progress(self) -> None:
        """A summary was stored: earlier failures don't count any more."""
        SummaryWork.objects.filter(pk=self.session_id, lease_token=self.token).update(
            attempts=1, error=""
        )

    def finish(self) -> None:
        """Nothing is due any more."""
        self._end(due=False, attempts=0, error="", not_before=None)

    def postpone(self, error: str) -> None:
        """It failed: try again, later each time."""
        work = SummaryWork.objects.filter(pk=self.session_id, lease_token=self.token).first()
        if work is None:
            return
        wait = WAITS[min(work.attempts, len(WAITS)) - 1]
        self._end(error=error, not_before=timezone.now() + wait)

    def _end(self, **changes: object) -> None:
        SummaryWork.objects.filter(pk=self.session_id, lease_token=self.token).update(
            lease_token=None, lease_owner="", lease_until=None, **changes
        )


def summary_request(session_id: UUID) -> bool:
    """Put on record that a session has messages to sum up; whether that is news."""
    if SummaryWork.objects.filter(pk=session_id, due=False).update(due=True, not_before=None):
        return True
    if SummaryWork.objects.filter(pk=session_id).exists():
        return False
    made = SummaryWork.objects.bulk_create(
        [SummaryWork(session_id=session_id, due=True)], ignore_conflicts=True
    )
    return bool(made)


def summary_claim(session_id: UUID, *, now: datetime | None = None) -> SummaryLease | None:
    """Take the work, or None: none is due, it isn't time yet, or somebody is at it."""
    now = now or timezone.now()
    work = SummaryWork.objects.filter(pk=session_id, due=True).first()
    if work is None or is_held(work, now) or (work.not_before and work.not_before > now):
        return None
    lease = SummaryLease(session_id, uuid.uuid4())
    unchanged = SummaryWork.objects.filter(
        pk=session_id, due=True, lease_token=work.lease_token, attempts=work.attempts
    )
    claimed = unchanged.update(
        attempts=F("attempts") + 1,
        lease_token=lease.token,
        lease_owner=this_process(),
        lease_until=now + LEASE,
    )
    return lease if claimed else None


def is_held(work: SummaryWork, now: datetime) -> bool:
    """Whether a living worker has the work."""
    if work.lease_token is None or work.lease_until is None or work.lease_until <= now:
        return False
    return not owner_is_gone(work.lease_owner)


def summaries_sweep(*, enqueue: Callable[[UUID], None], now: datetime | None = None) -> int:
    """Enqueue what is due with nobody at it; returns how many sessions. Safe to run at any
    time, by several at once."""
    now = now or timezone.now()
    enqueued = 0
    for work in SummaryWork.objects.filter(due=True).iterator():
        waits = work.not_before is not None and work.not_before > now
        if not waits and not is_held(work, now):
            enqueue(work.session_id)
            enqueued += 1
    return enqueued
