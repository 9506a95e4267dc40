"""Scheduled tasks of the queue itself."""

from __future__ import annotations

from memoryproject.foundation.process.finished_jobs import finished_jobs_drop


def drop_finished_jobs() -> int:
    """Delete the finished jobs that are not among the newest."""
    return finished_jobs_drop()
