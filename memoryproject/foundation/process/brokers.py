"""django-q2's brokers, with heartbeats that outlast a moment of high load.

A lane reports every other second. The stock brokers forget a report after three, so that a machine
under load seems to have no workers; and each reader writes the list of clusters back, which can
undo what a cluster has just added.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import connections
from django.utils import timezone
from django_q.brokers import Broker
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ

HEARTBEAT_SECONDS = 10
QUEUE = OrmQ._meta.db_table
TAKE = f"""
UPDATE {QUEUE} SET lock = %s WHERE id IN (
    SELECT id FROM {QUEUE} WHERE key = %s AND lock < %s ORDER BY id LIMIT %s
    FOR UPDATE SKIP LOCKED
) RETURNING id, payload
"""  # noqa: S608 constants only

REMOVE = f"DELETE FROM {QUEUE} WHERE id = %s"  # noqa: S608 constants only


class PatientBroker(Broker):  # type: ignore[misc]
    """Keeps the reports of clusters for HEARTBEAT_SECONDS."""

    def set_stat(self, key: str, value: str, timeout: int) -> Any:
        return super().set_stat(key, value, max(timeout, HEARTBEAT_SECONDS))


class DatabaseBroker(PatientBroker, ORM):  # type: ignore[misc]
    """Jobs in the database, heartbeats in the shared cache."""

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take the next jobs, oldest first; wait a moment if there is none.

        In one statement. The stock broker reads the jobs first, and of several clusters that read
        the same job all but one come away with nothing.
        """
        self.get_connection()
        now = timezone.now()
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(TAKE, [self.timeout(None), self.list_key, now, Conf.BULK])
            taken: list[tuple[int, str]] = sorted(cursor.fetchall())
        if taken:
            return taken
        time.sleep(Conf.POLL)
        return None

    def delete(self, task_id: int) -> None:
        """Remove a job.

        Unlike the stock broker it doesn't try the connection first, by which its caller has just
        stored the job's result.
        """
        with connections[Conf.ORM].cursor() as cursor:
            cursor.execute(REMOVE, [task_id])

    def get_stats(self, pattern: str) -> list[Any]:
        """Return the reports of all clusters, without writing anything."""
        found = self.cache.get_many(self.cache.get(Conf.Q_STAT) or [])
        return list(found.values())
