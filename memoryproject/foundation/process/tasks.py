"""Scheduled tasks of the queue itself."""

from __future__ import annotations

from django_q.models import Schedule, Success


def drop_finished_jobs() -> int:
    """Delete the finished jobs that are not among the newest."""
    return finished_jobs_drop()


# Keep only the newest of the finished jobs.

MAX_FINISHED = 500


def finished_jobs_drop(*, keep: int = MAX_FINISHED) -> int:
    """Delete the jobs that succeeded, except the newest ``keep``; return how many.

    The last job of each schedule stays: the page of the schedules shows it. Failed jobs stay until
    staff delete them.
    """
    newest = Success.objects.order_by("-stopped").values_list("stopped", flat=True)
    oldest_kept = newest[keep - 1 : keep].first()
    if oldest_kept is None:
        return 0
    last_of_schedules = Schedule.objects.filter(task__isnull=False).values("task")
    old = Success.objects.filter(stopped__lt=oldest_kept).exclude(pk__in=last_of_schedules)
    return int(old.delete()[0])
