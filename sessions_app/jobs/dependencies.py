"""Queue jobs for the workers."""

from __future__ import annotations

from uuid import UUID

from memoryproject.foundation.process.jobs import enqueue


def enqueue_job(job_id: UUID) -> None:
    """Queue this job for a worker."""
    enqueue("sessions_app.tasks.run_job", str(job_id), task_name=f"job {job_id}")
