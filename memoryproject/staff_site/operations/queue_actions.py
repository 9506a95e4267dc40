"""What staff do with background jobs: a failed one again or away, a schedule at once.

Each is one transaction with its audit event, and the queue comes last: what can't be recorded isn't
done, and a server that is killed halfway loses no job. With the queue in the database all of it is
there or none. Redis knows no transaction of ours: a commit that fails after it took the job leaves
the job there, once more at worst.
"""

from __future__ import annotations

from django.db import transaction
from django_q.models import Failure, Schedule

from memoryproject.foundation.audit.events import Actor, audit_record
from memoryproject.staff_site.broker import enqueue


def job_retry(*, key: str, actor: Actor) -> bool:
    """Put a failed job back into the queue. False where it is gone already: somebody was
    faster. Raises BrokerGoneError; then it is still among the failed ones."""
    with transaction.atomic():
        # Whoever deletes the row enqueues the job: pressed twice, it is done once.
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
        enqueue(task.func, *(task.args or ()), q_options=given, **(task.kwargs or {}))
    return True


def job_drop(*, key: str, actor: Actor) -> bool:
    """Remove a failed job; it isn't done again. False where it is gone already."""
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
    """Let a worker do a schedule's job now; its next run stays as it is. None where there is no
    such schedule. Raises BrokerGoneError."""
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
        task_id = enqueue(schedule.func, q_options={"group": schedule.name or str(schedule.pk)})
        # The job's id is known only now; the row is ours already, so nobody is waited for.
        Schedule.objects.filter(pk=schedule.pk).update(task=task_id)
    return schedule
