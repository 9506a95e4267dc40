"""The schedules of background work."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django_q.models import OrmQ, Schedule

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Planned:
    """A task by its dotted name, with its interval in minutes."""

    name: str
    task: str
    minutes: int


PLANNED = (
    Planned("Sweep work", "sessions_app.tasks.sweep_work", 1),
    Planned("Sweep cards", "sessions_app.tasks.sweep_cards", 1),
    Planned("Judge sessions", "sessions_app.tasks.judge_sessions", 1),
    Planned("Summarize sessions", "sessions_app.tasks.summarize_sessions", 1),
    Planned("Expire sessions", "sessions_app.tasks.expire_sessions", 1),
    Planned("Archive sessions", "sessions_app.tasks.archive_sessions", 60),
    Planned("Tend embeddings", "sessions_app.tasks.tend_embeddings", 5),
    Planned("Drop raw deliveries", "sessions_app.tasks.drop_raw_deliveries", 60),
    Planned("Make and drop partitions", "sessions_app.tasks.tend_partitions", 60),
    Planned("Drop old usage", "sessions_app.tasks.drop_old_usage", 24 * 60),
    Planned("Drop backups of transcripts", "sessions_app.tasks.drop_transcript_backups", 60),
    Planned("Drop old media", "sessions_app.tasks.drop_old_media", 60),
    Planned("Tend memory documents", "sessions_app.tasks.tend_memory_documents", 60),
    Planned("Seal audit events", "memoryproject.foundation.audit.tasks.seal", 1),
    Planned("Prune audit events", "memoryproject.foundation.audit.tasks.prune", 24 * 60),
    Planned("Tidy the API", "memoryproject.foundation.rest_kit.tasks.tidy", 60),
    Planned("Drop webhook deliveries", "sessions_app.tasks.drop_webhook_deliveries", 60),
    Planned("Count the dashboard's figures", "memoryproject.staff_site.tasks.recount", 1),
    Planned("Check for alerts", "memoryproject.staff_site.tasks.check_alerts", 1),
    Planned("Check the question set", "sessions_app.tasks.check_questions", 24 * 60),
    Planned("Notify staff", "memoryproject.staff_site.tasks.notify_staff", 1),
    Planned("Propose merges", "sessions_app.tasks.propose_merges", 7 * 24 * 60),
)

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
