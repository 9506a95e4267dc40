"""Claim the work of making a session's summaries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from memoryproject.foundation.leases import Lease
from sessions_app.models import SummarizationMetadata, SummaryWork
from sessions_app.models.sessions import SessionStatus

# The delays after failures: the model server is down or overloaded.
WAITS = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))


@dataclass(frozen=True)
class SummaryLease(Lease[SummaryWork]):
    """The right to make a session's summaries."""

    @property
    def session_id(self) -> UUID:
        return self.row.session_id

    def progress(self) -> None:
        """Reset the failures, because a summary was stored."""
        self.held().update(attempts=1, error="")

    def finish(self, *, again_at: datetime | None = None) -> None:
        """Mark that nothing is due any more, or not before ``again_at``."""
        self.release(due=False, attempts=0, error="", not_before=again_at)

    def postpone(self, error: str) -> None:
        """Store a failure; the delay before the next try grows each time."""
        work = self.held().first()
        if work is None:
            return
        wait = WAITS[min(work.attempts, len(WAITS)) - 1]
        self.release(error=error, not_before=timezone.now() + wait)


def summary_is_requested(session_id: UUID) -> bool:
    """Return whether the session is marked."""
    return SummaryWork.objects.filter(pk=session_id, due=True).exists()


def summary_request(session_id: UUID) -> bool:
    """Mark that a session has messages to summarise; return whether the mark is new."""
    if SummaryWork.objects.filter(pk=session_id, due=False).update(due=True, not_before=None):
        return True
    if SummaryWork.objects.filter(pk=session_id).exists():
        return False
    made = SummaryWork.objects.bulk_create(
        [SummaryWork(session_id=session_id, due=True)], ignore_conflicts=True
    )
    return bool(made)


def summary_claim(session_id: UUID, *, now: datetime | None = None) -> SummaryLease | None:
    """Claim the work; return None if none is due, it has to wait, or another worker holds it."""
    now = now or timezone.now()
    work = SummaryWork.objects.filter(pk=session_id, due=True).first()
    if work is None or (work.not_before and work.not_before > now):
        return None
    unchanged = SummaryWork.objects.filter(due=True, attempts=work.attempts)
    token = unchanged.claim(work, now=now, attempts=F("attempts") + 1)
    return SummaryLease(work, token) if token else None


def excerpts_waiting(now: datetime) -> list[UUID]:
    """Return the session that waits longest for the model to replace its last summary's excerpts.

    One at a time: a model that is still down must not hold up other work.
    """
    later = SummarizationMetadata.objects.filter(
        session=OuterRef("session"), number__gt=OuterRef("number")
    )
    last = SummarizationMetadata.objects.filter(
        ~Exists(later), is_extractive=True, sources_deleted=False, session__summary_work__due=False
    ).exclude(session__status=SessionStatus.ARCHIVED)
    waits = last.exclude(session__summary_work__not_before__gt=now)
    oldest = waits.order_by(F("session__summary_work__not_before").asc(nulls_first=True))
    return list(oldest.values_list("session", flat=True)[:1])


def summaries_abandoned(now: datetime) -> list[UUID]:
    """Return the sessions whose summaries are due and that no worker holds."""
    ready = Q(not_before__isnull=True) | Q(not_before__lte=now)
    due = SummaryWork.objects.filter(ready, due=True)
    return [work.session_id for work in due.abandoned(now)]
