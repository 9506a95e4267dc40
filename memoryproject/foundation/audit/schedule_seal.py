"""Enqueue sealing of the events that were just committed."""

from __future__ import annotations

from django.db import connection

from memoryproject.foundation.process.lanes import SCHEDULES, enqueue

TASK = "memoryproject.foundation.audit.tasks.seal"


def schedule_seal() -> None:
    """Enqueue a sealing job, unless one is already waiting.

    AuditSealJob's row marks that a job is waiting; the job deletes the row before it looks for
    events. If a job is lost, the scheduled one deletes the row, so that the queue is tried at most
    once a minute while it is down. Runs after a commit: an error here affects no transaction.
    """
    if _mark_taken():
        enqueue(TASK, lane=SCHEDULES, task_name="seal audit events", save=False)


def _mark_taken() -> bool:
    """Return whether this process set the mark. An existing mark is neither locked nor written."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_auditsealjob (id, asked_at) VALUES (1, now()) ON CONFLICT DO NOTHING"
        )
        return int(cursor.rowcount) == 1
