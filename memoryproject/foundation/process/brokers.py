"""django-q2's brokers, with workers that are woken and heartbeats that outlast high load.

A lane reports every other second. The stock brokers forget a report after three, so that a machine
under load seems to have no workers; and each reader writes the list of clusters back, which can
undo what a cluster has just added.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections, transaction
from django.utils import timezone
from django_q.brokers import Broker
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ, Task

from memoryproject.foundation.process.lanes import BACKGROUND
from memoryproject.foundation.process.storage import FILE_MODE, folder_make

HEARTBEAT_SECONDS = 10
# More than a pipe holds on Linux and macOS.
READ_BYTES = 1024**2
# A connection that was used a moment ago isn't checked again before each look for jobs.
CHECK_SECONDS = 1.0
# A worker takes a job for so long, and the process that leads it extends that while it lives: a
# job is neither given out twice nor left, however long it takes.
HOLD = timedelta(seconds=30)
# The clocks of several hosts may differ by so much.
CLOCK_SLACK = timedelta(minutes=1)
QUEUE = OrmQ._meta.db_table
# PostgreSQL may run a subquery of a condition once for each row that it is compared with, and each
# run would take another job. A materialized one runs once, whatever the plan.
TAKE = f"""
WITH oldest AS MATERIALIZED (
    SELECT id FROM {QUEUE} WHERE key = %s AND lock < %s ORDER BY id LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE {QUEUE} AS job SET lock = %s FROM oldest
WHERE job.id = oldest.id RETURNING job.id, job.payload
"""  # noqa: S608 constants only

REMOVE = f"DELETE FROM {QUEUE} WHERE id = %s"  # noqa: S608 constants only

TASK_FIELDS = Task._meta.concrete_fields
# A job that failed before, or whose end wasn't stored, has a row.
FINISH = f"""
WITH done AS ({REMOVE})
INSERT INTO {Task._meta.db_table} AS task ({", ".join(f'"{each.column}"' for each in TASK_FIELDS)})
VALUES ({", ".join(["%s"] * len(TASK_FIELDS))})
ON CONFLICT (id) DO UPDATE SET stopped = excluded.stopped, result = excluded.result,
    success = excluded.success, attempt_count = task.attempt_count + 1
WHERE NOT task.success
"""  # noqa: S608 constants only


class WakeUps:
    """A named pipe by which a process that stored a job wakes one that waits for jobs.

    Nothing depends on it: whoever waits looks for jobs also after a moment without a wake-up.
    Jobs of other machines, and of processes with another DATA_DIR, are found that way.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader: int | None = None

    def send(self) -> None:
        """Wake a process that waits. Call it once the job can be seen by others."""
        # It fails where nobody waits, and where so many wake-ups are unread that none is needed.
        with suppress(OSError):
            writer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(writer, b".")
            finally:
                os.close(writer)

    def wait(self, seconds: float) -> bool:
        """Wait for a wake-up, at most so long; return whether one came, also since the last call.

        Call it after a look for jobs, and look again afterwards. Raises OSError.
        """
        if self._reader is None:
            self._reader = self._open()
        if not select.select([self._reader], [], [], seconds)[0]:
            return False
        with suppress(BlockingIOError):
            # All of them: one look finds the jobs of all.
            os.read(self._reader, READ_BYTES)
        return True

    def _open(self) -> int:
        folder_make(self._path.parent)
        with suppress(FileExistsError):
            os.mkfifo(self._path, FILE_MODE)
        # Open for writing, too: otherwise the pipe would end with each process that wrote to it.
        return os.open(self._path, os.O_RDWR | os.O_NONBLOCK)


def lane_wake_ups(lane: str) -> WakeUps:
    """Return the wake-ups of the workers of a lane on this machine."""
    return WakeUps(settings.DATA_DIR / "run" / f"jobs-{lane}.pipe")


class PatientBroker(Broker):  # type: ignore[misc]
    """Keeps the reports of clusters for HEARTBEAT_SECONDS."""

    def set_stat(self, key: str, value: str, timeout: int) -> Any:
        return super().set_stat(key, value, max(timeout, HEARTBEAT_SECONDS))


class DatabaseBroker(PatientBroker, ORM):  # type: ignore[misc]
    """Jobs in the database, heartbeats in the shared cache."""

    def __init__(self, list_key: str = Conf.CLUSTER_NAME) -> None:
        super().__init__(list_key)
        self._wake_ups = lane_wake_ups(list_key)
        self._checked_at = float("-inf")

    def enqueue(self, task: str) -> int:
        """Store a job, and wake a worker of this machine once it is committed.

        Nobody waits for background work. Its workers look for jobs by themselves, so that one job
        makes the vectors of many messages and doesn't run beside the storing of the next one.
        """
        key: int = super().enqueue(task)
        if self.list_key != BACKGROUND:
            transaction.on_commit(self._wake_ups.send, using=Conf.ORM, robust=True)
        return key

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take the oldest job; wait for a wake-up, or a moment, if there is none.

        In one statement. The stock broker reads the jobs first, and of several clusters that read
        the same job all but one come away with nothing. A job whose taking is lost with PostgreSQL
        is given out again, as one whose result is lost.
        """
        if time.monotonic() - self._checked_at >= CHECK_SECONDS:
            self.get_connection()
            self._checked_at = time.monotonic()
        now = timezone.now()
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(TAKE, [self.list_key, now, now + HOLD])
            taken: list[tuple[int, str]] = cursor.fetchall()
        if taken:
            return taken
        self._wait()
        return None

    def _wait(self) -> None:
        try:
            self._wake_ups.wait(Conf.POLL)
        except OSError:
            # There is no pipe, for instance because the disk is full.
            time.sleep(Conf.POLL)

    def delete(self, task_id: int) -> None:
        """Remove a job.

        Unlike the stock broker it doesn't try the connection first, by which its caller has just
        stored the job's result.
        """
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(REMOVE, [task_id])

    def finish(self, job: dict[str, Any], function: str) -> None:
        """Store the result of a job that succeeded, and remove the job, in one statement."""
        connection = connections[Conf.ORM]
        names = ("id", "name", "args", "kwargs", "result", "group", "cluster", "started", "stopped")
        known = {name: job.get(name) for name in names}
        row = Task(**known, func=function, success=True, attempt_count=1)
        values = [
            each.get_db_prep_save(getattr(row, each.attname), connection) for each in TASK_FIELDS
        ]
        with connection.cursor() as cursor:
            cursor.execute(FINISH, [job["ack_id"], *values])

    def get_stats(self, pattern: str) -> list[Any]:
        """Return the reports of all clusters, without writing anything."""
        found = self.cache.get_many(self.cache.get(Conf.Q_STAT) or [])
        return list(found.values())


def jobs_hold(*, held: Collection[int], left: Collection[int], now: datetime) -> None:
    """Extend the time of the jobs that workers have; give back those that ended workers left.

    A job that is taken for longer than any worker takes one is given back, too: the clock was set
    back, or an earlier version took it.
    """
    if held:
        OrmQ.objects.filter(pk__in=held).update(lock=now + HOLD)
    if left:
        OrmQ.objects.filter(pk__in=left).update(lock=now)
    OrmQ.objects.filter(lock__gt=now + HOLD + CLOCK_SLACK).update(lock=now)
