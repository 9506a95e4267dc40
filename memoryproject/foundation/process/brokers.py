"""django-q2's own brokers, with heartbeats that outlast high load.

A cluster reports each second. The stock brokers forget a report after three, so that a machine
under load seems to have no workers; and each reader writes the list of clusters back, which can
undo what a cluster has just added.
"""

from __future__ import annotations

from typing import Any

from django_q.brokers import Broker
from django_q.brokers.orm import ORM
from django_q.conf import Conf

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
