"""Put jobs into django-q2's queue, through brokers that outlast high load.

A job is a hint, and may be lost: what is due is in tables of its own, where the sweep of each
minute finds it.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import connections, transaction
from django_q.brokers import Broker
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.tasks import async_task


def enqueue(function: str, *args: Any, task_name: str, **options: Any) -> None:
    """Put a job into the queue, where it is seen once the open transaction is committed.

    ``function`` is a dotted name, ``options`` are django-q2's. Jobs in the database are written in
    the transaction itself: one commit writes all to the disk. Redis gets them after the commit.
    """
    put = partial(async_task, function, *args, task_name=task_name, **options)
    if settings.Q_BROKER:
        transaction.on_commit(put)
    else:
        put()


# A cluster reports each second. The stock brokers forget a report after three, so that a machine
# under load seems to have no workers; and each reader writes the list of clusters back, which can
# undo what a cluster has just added.

HEARTBEAT_SECONDS = 10


class PatientBroker(Broker):  # type: ignore[misc]
    """Keeps the reports of clusters for HEARTBEAT_SECONDS."""

    def set_stat(self, key: str, value: str, timeout: int) -> Any:
        return super().set_stat(key, value, max(timeout, HEARTBEAT_SECONDS))


class DatabaseBroker(PatientBroker, ORM):  # type: ignore[misc]
    """Jobs in the database, heartbeats in the shared cache."""

    def get_stats(self, pattern: str) -> list[Any]:
        """Return the reports of all clusters, without writing anything."""
        found = self.cache.get_many(self.cache.get(Conf.Q_STAT) or [])
        return list(found.values())


# Work in threads that leave no connection to the database open.

P = ParamSpec("P")
T = TypeVar("T")


class ConnectionClosingExecutor(ThreadPoolExecutor):
    """A pool whose threads close their connections after each piece of work.

    Django opens connections for each thread, and closes them at the end of requests only: those of
    other threads would stay open, idle, as long as the threads live.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See Executor.submit."""

        def run() -> T:
            try:
                return fn(*args, **kwargs)
            finally:
                connections.close_all()

        return super().submit(run)
