"""Lets a worker seal what was just committed."""

from __future__ import annotations

from django.db import connection
from django_q.tasks import async_task

TASK = "memoryproject.foundation.audit.tasks.seal"


def schedule_seal() -> None:
    """Put a job that seals into the queue, unless one is waiting there.

    AuditSealJob's row says that one is; the job takes it away before it looks for rows. Where a
    job gets lost, the scheduled one takes the row away, so that the queue is tried at most once
    a minute while it is down. Runs after a commit: what it raises harms nobody's transaction.
    """
    if _mark_taken():
        async_task(TASK, task_name="seal audit events", save=False)


def _mark_taken() -> bool:
    """Whether the mark is ours; one that is there already is neither locked nor written."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_auditsealjob (id, asked_at) VALUES (1, now()) ON CONFLICT DO NOTHING"
        )
        return int(cursor.rowcount) == 1
