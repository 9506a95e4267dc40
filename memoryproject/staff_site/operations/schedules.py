"""Scheduled jobs: what each schedule does, when it ran, and whether it is late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import ngettext
from django_q.models import Schedule, Task

from memoryproject.staff_site.operations.job_words import Fault, fault_of, kind_of
from memoryproject.staff_site.server_state import LATE
from sessions_app.schedules import PLANNED


@dataclass(frozen=True)
class ScheduleRow:
    """A schedule.

    ``last_run``: when its last job ended, None if that is no longer known; ``outcome`` is one of
    done, failed, never and unknown; ``fault``: that of a failed job.
    """

    key: int
    name: str
    does: str
    every: str
    last_run: datetime | None
    outcome: str
    fault: Fault | None
    next_run: datetime | None
    late: timedelta | None


@dataclass(frozen=True)
class Schedules:
    """All schedules. ``missing``: names of planned schedules that aren't installed."""

    rows: list[ScheduleRow]
    missing: list[str]


def schedules_shown(*, now: datetime | None = None) -> Schedules:
    now = now or timezone.now()
    found = list(Schedule.objects.order_by("name", "id"))
    wanted = [schedule.task for schedule in found if schedule.task]
    tasks = Task.objects.filter(pk__in=wanted).defer("args", "kwargs")
    jobs = {task.id: task for task in tasks}
    names = {schedule.name for schedule in found}
    return Schedules(
        rows=[_row(schedule, jobs.get(schedule.task), now) for schedule in found],
        missing=[planned.name for planned in PLANNED if planned.name not in names],
    )


def _row(schedule: Schedule, job: Task | None, now: datetime) -> ScheduleRow:
    overdue = now - schedule.next_run if schedule.next_run else timedelta(0)
    failed = job is not None and not job.success
    return ScheduleRow(
        key=schedule.pk,
        name=schedule.name or str(schedule.pk),
        does=kind_of(schedule.func),
        every=_every(schedule),
        last_run=job.stopped if job else None,
        outcome=_outcome(schedule, job),
        fault=fault_of(job.result) if job and failed else None,
        next_run=schedule.next_run,
        late=overdue if overdue > LATE and schedule.repeats != 0 else None,
    )


def _outcome(schedule: Schedule, job: Task | None) -> str:
    if job is not None:
        return "done" if job.success else "failed"
    # Results are kept for the last few hundred successful jobs only.
    return "unknown" if schedule.task else "never"


def _every(schedule: Schedule) -> str:
    if schedule.schedule_type != Schedule.MINUTES:
        return str(schedule.get_schedule_type_display())
    minutes = schedule.minutes or 1
    if minutes % (24 * 60) == 0:
        days = minutes // (24 * 60)
        return ngettext("each day", "every %(n)d days", days) % {"n": days}
    if minutes % 60 == 0:
        hours = minutes // 60
        return ngettext("each hour", "every %(n)d hours", hours) % {"n": hours}
    return ngettext("each minute", "every %(n)d minutes", minutes) % {"n": minutes}
