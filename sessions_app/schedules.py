"""The schedules of background work."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django_q.models import OrmQ, Schedule

from memoryproject.foundation.tables import read_table

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Planned:
    """A task by its dotted name, with its interval in minutes."""

    name: str
    task: str
    minutes: int


PLANNED = tuple(Planned(name, *row) for name, row in read_table(__file__, "schedules.yaml").items())

MINUTE = timedelta(minutes=1)

OURS = r"^(sessions_app|memoryproject(\.\w+)+)\.tasks\."

OLD_QUEUES = ("commands", "schedules", "background")

# An arbitrary lock number: two concurrent installers must not create duplicates.
_LOCK = 0x5C4ED01E


def schedules_install() -> dict[str, bool]:
    """Create missing schedules, update existing ones, and remove this project's obsolete ones.

    Return for each name whether it was created.
    """
    made = {}
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        for planned in PLANNED:
            _, fresh = Schedule.objects.update_or_create(
                name=planned.name,
                defaults={
                    "func": planned.task,
                    "schedule_type": Schedule.MINUTES,
                    "minutes": planned.minutes,
                    "repeats": -1,
                    "cluster": None,
                },
            )
            made[planned.name] = fresh
        ours = Schedule.objects.filter(func__regex=OURS)
        ours.exclude(name__in=[planned.name for planned in PLANNED]).delete()
        # Of earlier versions. What such a job was to do is found by the sweep.
        OrmQ.objects.filter(key__in=OLD_QUEUES).delete()
    return made


def future_times_repair(now: datetime) -> int:
    """Bring back the times that a clock which was set back has left in the far future.

    Returns the number of schedules that are due now.

    The next run of a schedule in minutes is at most so many minutes away, and a job that was taken
    is given out again after the time of a job at most.
    """
    later = now + MINUTE
    in_minutes = Schedule.objects.filter(schedule_type=Schedule.MINUTES)
    late = in_minutes.filter(next_run__gt=later + F("minutes") * MINUTE).update(next_run=now)
    if late:
        logger.warning("The clock was set back: %d schedules are due now.", late)
    longest = timedelta(seconds=settings.Q_CLUSTER["retry"])
    OrmQ.objects.filter(lock__gt=later + longest).update(lock=now)
    return late
