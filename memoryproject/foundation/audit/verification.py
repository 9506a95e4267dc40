"""Verify the log in the background, show progress, and store the result."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.audit.chain import waiting
from memoryproject.foundation.audit.findings import AuditReport
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditHead, AuditVerification
from memoryproject.foundation.audit.verify import audit_verify
from memoryproject.foundation.process.jobs import enqueue

logger = logging.getLogger(__name__)

TASK = "memoryproject.foundation.audit.tasks.verify"
State = AuditVerification.State
OPEN = (State.WAITING, State.RUNNING)
# A worker without a sign of life for so long is dead.
SILENT = timedelta(minutes=3)
PROGRESS_EVERY_SECONDS = 1.0
KEPT = 50
# An advisory lock number that nothing else uses.
_LOCK = 0xA0D1783


def chain_state(now: datetime) -> dict[str, Any]:
    """Return the chain's state for the pages, without counting the table.

    ``last``: the last finished verification; ``open``: the one in progress. ``sealed`` counts the
    sealed events that still exist, ``waiting`` counts the others.
    """
    head = AuditHead.objects.filter(pk=1).first()
    pruned = AuditCheckpoint.objects.order_by("-number").first()
    return {
        "last": AuditVerification.objects.filter(state=State.DONE).first(),
        "open": _under_way(now),
        "sealed": (head.seq if head else 0) - (pruned.seq if pruned else 0),
        "waiting": waiting().count(),
    }


def _under_way(now: datetime) -> AuditVerification | None:
    return AuditVerification.objects.filter(state__in=OPEN, touched_at__gt=now - SILENT).first()


def verification_ask(*, asked_by: str, now: datetime) -> AuditVerification:
    """Enqueue a verification, or return the one that is in progress."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        under_way = _under_way(now)
        if under_way is not None:
            return under_way
        AuditVerification.objects.filter(state__in=OPEN).update(state=State.FAILED, ended_at=now)
        verification = AuditVerification.objects.create(
            asked_by=asked_by, asked_at=now, touched_at=now
        )
        old = AuditVerification.objects.order_by("-id").values_list("pk", flat=True)[KEPT:]
        AuditVerification.objects.filter(pk__in=list(old)).delete()
        transaction.on_commit(
            lambda: enqueue(TASK, verification.pk, task_name="verify the audit log", save=False)
        )
    return verification


def verification_run(
    *, verification_id: int, key: str, log_path: Path, now: Callable[[], datetime]
) -> AuditReport | None:
    """Verify the log and store the report. Call it outside of a transaction.

    Returns None if another worker has the verification, or it was given up.
    """
    waiting = AuditVerification.objects.filter(pk=verification_id, state=State.WAITING)
    if not waiting.update(state=State.RUNNING, touched_at=now()):
        return None
    verification = AuditVerification.objects.get(pk=verification_id)
    try:
        with _progress(verification_id, now) as progress:
            report = audit_verify(key=key, log_path=log_path, progress=progress)
    except Exception:
        _end(verification, State.FAILED, now())
        logger.exception("The audit log could not be verified.")
        return None
    with transaction.atomic():
        _end(verification, State.DONE, now(), report=report.as_dict(), checked=report.events)
        audit_record(
            action="audit.verify",
            actor=Actor("staff", verification.asked_by),
            object_type="audit log",
            details={"events": report.events, "found": report.found},
        )
    return report


def verification_note(*, report: AuditReport, now: datetime) -> None:
    """Store the report of the command."""
    AuditVerification.objects.create(
        asked_at=now,
        touched_at=now,
        ended_at=now,
        state=State.DONE,
        checked=report.events,
        total=report.events,
        report=report.as_dict(),
    )


def _end(verification: AuditVerification, state: str, at: datetime, **values: Any) -> None:
    AuditVerification.objects.filter(pk=verification.pk).update(
        state=state, ended_at=at, touched_at=at, **values
    )


@contextmanager
def _progress(pk: int, now: Callable[[], datetime]) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that writes the progress, through a connection of its own.

    The check reads in a transaction in which nothing can be written.
    """
    own: Any = connection.copy()
    due = 0.0

    def write(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + PROGRESS_EVERY_SECONDS
        with own.cursor() as cursor:
            cursor.execute(
                "UPDATE audit_auditverification SET checked = %s, total = %s, touched_at = %s"
                " WHERE id = %s",
                [done, total, now(), pk],
            )

    try:
        yield write
    finally:
        own.close()
