"""The server's current state: waiting turns, workers, late schedules, and disk space."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q
from django_q.models import Schedule

from memoryproject.foundation.process.storage import MIN_FREE_BYTES, free_bytes
from memoryproject.staff_site.broker import BrokerGoneError, clusters, queue_depth, takes_jobs
from sessions_app.models import Turn
from sessions_app.models.turns import WAITING_STATES

# Schedules are checked every half minute.
LATE = timedelta(minutes=2)


@dataclass(frozen=True)
class Waiting:
    """Turns without an answer; ``since``: when the oldest of them was created."""

    turns: int
    since: datetime | None


@dataclass(frozen=True)
class Machine:
    """The state of the server.

    ``queued``: jobs that no worker has taken, None if the broker can't be reached. ``late``:
    overdue schedules, ``late_since`` the longest of them.
    """

    clusters: int
    workers: int
    queued: int | None
    schedules: int
    late: int
    late_since: datetime | None
    database_bytes: int
    free_bytes: int

    @property
    def is_full(self) -> bool:
        return self.free_bytes < MIN_FREE_BYTES


def waiting_turns() -> Waiting:
    turns = Turn.objects.filter(state__in=WAITING_STATES).order_by()
    found = turns.aggregate(number=Count("id"), since=Min("created_at"))
    return Waiting(found["number"], found["since"])


def server_state(*, now: datetime) -> Machine:
    due = Schedule.objects.exclude(repeats=0).order_by()
    schedules = due.aggregate(
        all=Count("id"),
        late=Count("id", filter=Q(next_run__lt=now - LATE)),
        since=Min("next_run", filter=Q(next_run__lt=now - LATE)),
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (size,) = cursor.fetchone()
    try:
        working = [cluster for cluster in clusters() if takes_jobs(cluster)]
        queued: int | None = queue_depth()
    except BrokerGoneError:
        working, queued = [], None
    return Machine(
        clusters=len(working),
        workers=sum(len(stat.workers) for stat in working),
        queued=queued,
        schedules=schedules["all"],
        late=schedules["late"],
        late_since=schedules["since"],
        database_bytes=size,
        free_bytes=free_bytes(settings.DATA_DIR),
    )
