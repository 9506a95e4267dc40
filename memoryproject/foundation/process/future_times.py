"""Bring back the times that a clock which was set back has left in the far future.

Without this, every schedule would wait for as long as the clock went back.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db.models import F
from django_q.models import Schedule

logger = logging.getLogger(__name__)

MINUTE = timedelta(minutes=1)


def future_times_repair(now: datetime) -> int:
    """Make schedules due whose time is later than anything sets it; return how many.

    The next run of a schedule in minutes is at most so many minutes away.
    """
    in_minutes = Schedule.objects.filter(schedule_type=Schedule.MINUTES)
    later = now + MINUTE + F("minutes") * MINUTE
    schedules = in_minutes.filter(next_run__gt=later).update(next_run=now)
    if schedules:
        logger.warning("The clock was set back: %d schedules are due now.", schedules)
    return schedules
