"""The queue of background jobs: waiting, running and failed jobs, and the workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django_q.models import OrmQ, Success, Task
from django_q.signing import SignedPackage
from django_q.status import Stat

from memoryproject.foundation.process.lanes import (
    ANSWERS,
    BACKGROUND,
    COMMANDS,
    SCHEDULES,
    lane_of,
)
from memoryproject.staff_site.broker import (
    BrokerGoneError,
    clusters,
    is_redis,
    queue_depth,
    state_of,
    takes_jobs,
)
from memoryproject.staff_site.operations.job_words import Fault, fault_of, kind_of

# Each job is unpacked to see its kind. Of a longer queue only the oldest jobs are read.
MAX_UNPACKED = 200
MAX_FINISHED = 20

# django-q2's states of its workers, which they report in English.
WORKER_STATES = {
    "Starting": gettext_lazy("starting"),
    "Working": gettext_lazy("working"),
    "Idle": gettext_lazy("idle"),
    "Stopping": gettext_lazy("stopping"),
    "Stopped": gettext_lazy("stopped"),
}

LANE_TITLES = {
    ANSWERS: gettext_lazy("Answers"),
    COMMANDS: gettext_lazy("Commands"),
    SCHEDULES: gettext_lazy("Schedules"),
    BACKGROUND: gettext_lazy("Background work"),
}


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind; ``oldest``: the time at which the first of them was enqueued."""

    name: str
    count: int
    oldest: datetime


@dataclass(frozen=True)
class Cluster:
    """A group of worker processes, from its last heartbeat.

    ``lane``: the title of its kind of work. ``working``: it takes jobs.
    """

    lane: str
    host: str
    pid: int
    status: str
    working: bool
    workers: int
    since: datetime
    heartbeat: datetime
    restarts: int


@dataclass(frozen=True)
class QueueState:
    """The state of the queue.

    ``depth``: the number of waiting jobs, None if the broker can't be reached. ``waiting`` and
    ``running`` are by kind, and empty with Redis, which doesn't report them; ``unpacked``: the
    number of waiting jobs that were read. ``stalled``: jobs wait and no worker runs.
    """

    depth: int | None
    is_redis: bool
    waiting: list[Kind]
    running: list[Kind]
    unpacked: int
    oldest: datetime | None
    clusters: list[Cluster]
    finished: list[Kind]

    @property
    def stalled(self) -> bool:
        return not any(cluster.working for cluster in self.clusters)


@dataclass(frozen=True)
class FailedJob:
    """A failed job. ``key`` is django-q2's id of the job."""

    key: str
    kind: str
    fault: Fault
    failed_at: datetime
    attempts: int


def queue_state(*, now: datetime | None = None) -> QueueState:
    """Return the queue's state.

    Never raises and never waits long: if the broker can't be reached, ``depth`` is None.
    """
    now = now or timezone.now()
    try:
        depth: int | None = queue_depth()
        working = [_cluster(stat) for stat in clusters()]
    except BrokerGoneError:
        depth, working = None, []
    waiting: list[tuple[str, datetime]] = []
    running: list[tuple[str, datetime]] = []
    if not is_redis():
        waiting, running = _waiting(now), _running(now)
    return QueueState(
        depth=depth,
        is_redis=is_redis(),
        waiting=_by_kind(waiting),
        running=_by_kind(running),
        unpacked=len(waiting),
        oldest=min((since for _kind, since in waiting), default=None),
        clusters=sorted(working, key=lambda each: (each.host, each.lane)),
        finished=_finished(),
    )


def _waiting(now: datetime) -> list[tuple[str, datetime]]:
    """Return the waiting jobs.

    In the database a job's ``lock`` is the time at which it was enqueued, until a worker takes it.
    """
    rows = OrmQ.objects.filter(lock__lte=now).order_by("id")[:MAX_UNPACKED]
    return [_unpacked(row.payload, row.lock or now) for row in rows]


def _running(now: datetime) -> list[tuple[str, datetime]]:
    """Return the running jobs. Their ``lock`` is the time until which nobody else may take them."""
    rows = OrmQ.objects.filter(lock__gt=now).order_by("id")[:MAX_UNPACKED]
    return [_unpacked(row.payload, now) for row in rows]


def _unpacked(payload: str, since: datetime) -> tuple[str, datetime]:
    try:
        job = SignedPackage.loads(payload)
    except Exception:
        return "", since
    return str(job.get("func", "")), job.get("started") or since


def _by_kind(jobs: list[tuple[str, datetime]]) -> list[Kind]:
    found: dict[str, list[datetime]] = {}
    for function, since in jobs:
        found.setdefault(function, []).append(since)
    kinds = [Kind(kind_of(name), len(times), min(times)) for name, times in found.items()]
    return sorted(kinds, key=lambda kind: (kind.oldest, kind.name))


def _finished() -> list[Kind]:
    """Return the recently finished jobs by kind.

    The schedule *Drop finished jobs* keeps the newest.
    """
    counted = (
        Success.objects.order_by()
        .values_list("func")
        .annotate(Count("id"))
        .order_by("-id__count", "func")[:MAX_FINISHED]
    )
    newest = dict(
        Success.objects.order_by("func", "-stopped").distinct("func").values_list("func", "stopped")
    )
    return [Kind(kind_of(name), count, newest[name]) for name, count in counted if name in newest]


def _cluster(stat: Stat) -> Cluster:
    state = state_of(stat)
    lane = lane_of(stat.cluster_id) or ""
    return Cluster(
        lane=str(LANE_TITLES.get(lane, lane)),
        host=stat.host,
        pid=int(stat.pid),
        status=str(WORKER_STATES.get(state, state)),
        working=takes_jobs(stat),
        workers=len(stat.workers),
        since=stat.tob,
        heartbeat=stat.timestamp,
        restarts=int(stat.reincarnations),
    )


def failed_job(task: Task) -> FailedJob:
    """Return a row of django-q2's failed jobs, without the job's arguments."""
    return FailedJob(
        key=task.id,
        kind=kind_of(task.func),
        fault=fault_of(task.result),
        failed_at=task.stopped,
        attempts=task.attempt_count,
    )
