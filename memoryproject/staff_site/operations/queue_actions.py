"""Staff actions on background jobs: retry or remove a failed job, run a schedule now.

Each action is one transaction with its audit event, and the queue comes last: an action that can't
be recorded isn't done, and a server that is killed halfway loses no job. With the queue in the
database the action is atomic. Redis doesn't take part in our transaction: if a commit fails after
Redis took the job, the job stays there and runs once more at worst.
"""

from __future__ import annotations

from django.db import transaction
from django_q.models import Failure, Schedule

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.process.lanes import BACKGROUND
from memoryproject.staff_site.broker import enqueue


def job_retry(*, key: str, actor: Actor) -> bool:
    """Put a failed job back into the queue. Return False if somebody did so already.

    Raises BrokerGoneError; then the job is still among the failed ones.
    """
    with transaction.atomic():
        # The request that deletes the row enqueues the job: a second click doesn't run it twice.
        task = Failure.objects.select_for_update().filter(pk=key).first()
        if task is None:
            return False
        Failure.objects.filter(pk=key).delete()
        audit_record(
            action="job.retry",
            actor=actor,
            object_type="job",
            object_id=key,
            details={"task": task.func},
        )
        options = {"hook": task.hook, "group": task.group, "task_name": task.name}
        given = {name: value for name, value in options.items() if value}
        lane = task.cluster or BACKGROUND
        enqueue(task.func, *(task.args or ()), lane=lane, q_options=given, **(task.kwargs or {}))
    return True


def job_drop(*, key: str, actor: Actor) -> bool:
    """Remove a failed job without running it again. Return False if it is gone already."""
    with transaction.atomic():
        task = Failure.objects.select_for_update().filter(pk=key).first()
        if task is None:
            return False
        task.delete()
        audit_record(
            action="job.drop",
            actor=actor,
            object_type="job",
            object_id=key,
            details={"task": task.func},
        )
    return True


def schedule_run(*, schedule_id: int, actor: Actor) -> Schedule | None:
    """Enqueue a schedule's job now; its next run stays as planned.

    Returns None if there is no such schedule. Raises BrokerGoneError.
    """
    with transaction.atomic():
        schedule = Schedule.objects.select_for_update().filter(pk=schedule_id).first()
        if schedule is None:
            return None
        audit_record(
            action="schedule.run",
            actor=actor,
            object_type="schedule",
            object_id=schedule.name or schedule.pk,
            details={"task": schedule.func},
        )
        group = {"group": schedule.name or str(schedule.pk)}
        task_id = enqueue(schedule.func, lane=schedule.cluster or BACKGROUND, q_options=group)
        # The job's id is known only now. The row is already locked by us, so this doesn't wait.
        Schedule.objects.filter(pk=schedule.pk).update(task=task_id)
    return schedule
