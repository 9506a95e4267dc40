"""Bring back the times that a clock which was set back has left in the far future.

Without this, a job that was queued before would wait for as long as the clock went back, and so
would every schedule.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import F
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule

logger = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)


def future_times_repair(now: datetime) -> int:
    """Make jobs and schedules due whose time is later than anything sets it; return how many.

    A job that a worker takes is locked for django-q2's ``retry`` seconds. The next run of a
    schedule in minutes is at most so many minutes away.
    """
    locked = timedelta(seconds=Conf.RETRY) + MINUTE
    jobs = OrmQ.objects.filter(lock__gt=now + locked).update(lock=now)
    in_minutes = Schedule.objects.filter(schedule_type=Schedule.MINUTES)
    later = now + MINUTE + F("minutes") * MINUTE
    schedules = in_minutes.filter(next_run__gt=later).update(next_run=now)
    if jobs or schedules:
        logger.warning(
            "The clock was set back: %d jobs and %d schedules are due now.", jobs, schedules
        )
    return jobs + schedules
