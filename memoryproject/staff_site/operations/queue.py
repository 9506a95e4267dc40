"""The queue of background jobs: what waits, what is being done, what failed, and who works."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ, Success, Task
from django_q.signing import SignedPackage

from memoryproject.staff_site.broker import BrokerGoneError, clusters, is_redis, queue_depth
from memoryproject.staff_site.operations.job_words import Fault, fault_of, kind_of

# Each job is unpacked to see what it does: of a longer queue the oldest stand for all.
MAX_UNPACKED = 200
MAX_FINISHED = 20


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind; ``oldest``: since when the first of them waits or is being done."""

    name: str
    count: int
    oldest: datetime


@dataclass(frozen=True)
class Cluster:
    """A group of worker processes, as its last heartbeat told. ``working``: it takes jobs."""

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
    """``depth``: the jobs that wait, None where the broker is gone. ``waiting`` and ``running``
    are by kind and empty with Redis, which doesn't tell; ``unpacked``: how many of the waiting
    ones they are about. ``stalled``: jobs wait and nobody works."""

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
    """``key`` is django-q2's id of the job."""

    key: str
    kind: str
    fault: Fault
    failed_at: datetime
    attempts: int


def queue_state(*, now: datetime | None = None) -> QueueState:
    """Never raises and never waits long: a broker that is gone shows as ``depth`` None."""
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
        clusters=working,
        finished=_finished(),
    )


def _waiting(now: datetime) -> list[tuple[str, datetime]]:
    """In the database a job's ``lock`` is when it was put there, until a worker takes it."""
    rows = OrmQ.objects.filter(lock__lte=now).order_by("id")[:MAX_UNPACKED]
    return [_unpacked(row.payload, row.lock or now) for row in rows]


def _running(now: datetime) -> list[tuple[str, datetime]]:
    """Then it is until when nobody else may take it."""
    taken = timedelta(seconds=Conf.RETRY)
    rows = OrmQ.objects.filter(lock__gt=now).order_by("id")[:MAX_UNPACKED]
    return [(_unpacked(row.payload, now)[0], (row.lock or now) - taken) for row in rows]


def _unpacked(payload: str, since: datetime) -> tuple[str, datetime]:
    try:
        job = SignedPackage.loads(payload)
    except Exception:  # noqa: BLE001 whatever was put there under another key or version
        return "", since
    return str(job.get("func", "")), job.get("started") or since


def _by_kind(jobs: list[tuple[str, datetime]]) -> list[Kind]:
    found: dict[str, list[datetime]] = {}
    for function, since in jobs:
        found.setdefault(function, []).append(since)
    kinds = [Kind(kind_of(name), len(times), min(times)) for name, times in found.items()]
    return sorted(kinds, key=lambda kind: (kind.oldest, kind.name))


def _finished() -> list[Kind]:
    """What was done lately, by kind; django-q2 keeps the last SAVE_LIMIT jobs that went well."""
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


def _cluster(stat: object) -> Cluster:
    told = stat.__dict__
    return Cluster(
        host=str(told["host"]),
        pid=int(told["pid"]),
        status=str(told["status"]),
        working=told["status"] in (Conf.IDLE, Conf.WORKING),
        workers=len(told["workers"]),
        since=told["tob"],
        heartbeat=told["timestamp"],
        restarts=int(told["reincarnations"]),
    )


def failed_job(task: Task) -> FailedJob:
    """One row of django-q2's failed jobs, without what it was about."""
    return FailedJob(
        key=task.id,
        kind=kind_of(task.func),
        fault=fault_of(task.result),
        failed_at=task.stopped,
        attempts=task.attempt_count,
    )
