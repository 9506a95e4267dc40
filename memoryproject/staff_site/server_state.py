"""The state of the server: the broker of jobs and its workers, schedules, and which parts are up.

Nothing here waits longer than a moment.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, override
from django_q.brokers import Broker, get_broker
from django_q.conf import Conf
from django_q.models import Schedule
from django_q.status import Stat
from django_q.tasks import async_task

from memoryproject.foundation.process.storage import MIN_FREE_BYTES, free_bytes
from memoryproject.foundation.replica import replica_state
from sessions_app.turns.facade import heartbeats

WAIT_SECONDS = 2.0
# The commands of the programs that work.
ANSWER, QCLUSTER = "answer", "qcluster"
# The states in which a cluster takes jobs.
WORKING = ("Idle", "Working")
# The workers check for due schedules twice a minute.
LATE = timedelta(minutes=2)


class BrokerGoneError(Exception):
    """The broker can't be reached now."""


def is_redis() -> bool:
    """Return whether the broker is Redis; otherwise the jobs are in the database."""
    return bool(settings.Q_BROKER)


def broker_quick() -> Broker:
    """Return the configured broker; a Redis with a connection that times out soon."""
    return _redis_broker() if is_redis() else get_broker()


def _redis_broker() -> Broker:
    from redis import Redis  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    from memoryproject.foundation.process.redis_broker import RedisBroker  # noqa: PLC0415 slow

    broker = RedisBroker(Conf.CLUSTER_NAME)
    broker.connection = Redis.from_url(
        settings.Q_BROKER,
        socket_connect_timeout=WAIT_SECONDS,
        socket_timeout=WAIT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    return broker


@contextmanager
def _reachable() -> Iterator[None]:
    """Raise BrokerGoneError where the broker can't be reached in the block."""
    errors: tuple[type[Exception], ...] = (OSError,)
    if is_redis():
        from redis.exceptions import RedisError  # noqa: PLC0415 slow to import

        errors = (RedisError, OSError)
    try:
        yield
    except errors as error:
        raise BrokerGoneError(type(error).__name__) from None


@_reachable()
def queue_depth() -> int:
    """Return the number of jobs that no worker has taken yet. Raises BrokerGoneError."""
    return int(broker_quick().queue_size())


def jobs_known() -> int:
    """Return the number of jobs that aren't done, also those at work. Raises BrokerGoneError."""
    return queue_depth() + int(broker_quick().lock_size() or 0)


def clusters() -> list[Stat]:
    """Return the workers' heartbeats of the last seconds. Raises BrokerGoneError."""
    try:
        with _reachable():
            return list(Stat.get_all(broker_quick()))
    except DatabaseError:
        # The cache's table doesn't exist yet: there is no heartbeat.
        return []


def state_of(cluster: Stat) -> str:
    """Return django-q2's state of a cluster, in English whatever the reader's language is.

    The heartbeat holds a text that is translated when it is read.
    """
    with override(None):
        return str(cluster.status)


def takes_jobs(cluster: Stat) -> bool:
    return state_of(cluster) in WORKING


@_reachable()
def enqueue(function: str, *args: Any, **options: Any) -> str:
    """Put a job into the queue and return its id. Raises BrokerGoneError."""
    return str(async_task(function, *args, broker=broker_quick(), **options))


def clusters_working() -> list[Stat]:
    """Return the heartbeats of those that take jobs. Raises BrokerGoneError."""
    return [cluster for cluster in clusters() if takes_jobs(cluster)]


def programs_missing() -> list[str]:
    """Return the commands of the programs that work and don't run. Raises BrokerGoneError."""
    runs = {ANSWER: heartbeats(timezone.now()), QCLUSTER: clusters_working()}
    return [name for name, alive in runs.items() if not alive]


def schedules_late(now: datetime, by: timedelta = LATE) -> list[Schedule]:
    """Return the schedules that are late by more than this, the latest first."""
    due = Schedule.objects.exclude(repeats=0).filter(next_run__lt=now - by)
    return list(due.order_by("next_run", "id"))


def database_bytes() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        (size,) = cursor.fetchone()
    return int(size)


# Whether all parts of the server are up.


@dataclass(frozen=True)
class Part:
    """A part of the server; ``hint`` says what to do if it isn't ready."""

    name: str
    ready: bool
    hint: str = ""

    @property
    def title(self) -> str:
        return str(TITLES.get(self.name, self.name))


TITLES = {
    "storage": gettext_lazy("storage"),
    "database": gettext_lazy("database"),
    "migrations": gettext_lazy("migrations"),
    "workers": gettext_lazy("workers"),
    "replica": gettext_lazy("replica of the database"),
}


def parts() -> list[Part]:
    """Return storage, database, migrations and workers, in the order of their dependencies.

    Never raises where the database is out of reach: it may break at any query.
    """
    storage = _storage()
    try:
        return [storage, *_database_parts()]
    except Error as error:
        return [storage, Part("database", False, str(error).strip())]


def _database_parts() -> Iterator[Part]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        has_vector = cursor.fetchone() is not None
    yield Part("database", True)
    if not has_vector:
        yield Part("pgvector", False, _("Run `python manage.py migrate`."))
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    yield Part("migrations", not plan, _("Run `python manage.py migrate`.") if plan else "")
    if not plan:
        yield _workers()


def replica_part() -> list[Part]:
    """Return the replica of the database, if there is to be one. The server is ready without it."""
    if not settings.DATABASE_REPLICA_URL:
        return []
    state = replica_state()
    hints = {
        "": _("Up to date."),
        "late": _("It is %(seconds)d s behind: the primary is read.")
        % {"seconds": math.ceil(state.seconds or 0)},
        "unreachable": _("It doesn't answer: the primary is read."),
        "other": _("It is no replica of this database, or was promoted: the primary is read."),
    }
    return [Part("replica", not state.problem, hints[state.problem])]


def _storage() -> Part:
    enough = free_bytes(settings.DATA_DIR) >= MIN_FREE_BYTES
    hint = (
        "" if enough else _("The disk of DATA_DIR is full: free some space (docs/operations.md).")
    )
    return Part("storage", enough, hint)


def _workers() -> Part:
    try:
        missing = programs_missing()
    except BrokerGoneError:
        return Part("workers", False, _("The broker doesn't answer: see Q_BROKER."))
    hints = (_("Run `python manage.py %(name)s`.") % {"name": name} for name in missing)
    return Part("workers", not missing, " ".join(hints))
