"""The lanes of background work: each has workers of its own.

A lane is a cluster of django-q2 with its own queue. Work that waits for a model or for a slow
server holds up its own lane and no other.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.dispatch import Signal
from django_q.brokers import Broker, get_broker
from django_q.tasks import async_task

# Answers, which may ask the chat model; django-q2's main cluster, by the name in Q_CLUSTER.
ANSWERS = "memory"
# What a person waits for and needs no chat model: commands, stored answers.
COMMANDS = "commands"
# The schedules: sweeps, expiry, seals.
SCHEDULES = "schedules"
# Everything else: summaries, learning, documents, vectors, forgettings, outgoing webhooks.
BACKGROUND = "background"

LANES = (ANSWERS, COMMANDS, SCHEDULES, BACKGROUND)

# Sent after the workers started, and after one of them was replaced that may have left a job; once
# and not by each worker. The process that sends it ends with it.
workers_changed = Signal()


def enqueue(
    function: str, *args: Any, lane: str = BACKGROUND, broker: Broker | None = None, **options: Any
) -> str:
    """Put a job into a lane's queue and return its id.

    ``function`` is a dotted name, ``options`` are django-q2's. A name that is no lane counts as
    BACKGROUND. The call's ``broker`` must be one of that lane; by default it is made.
    """
    if lane not in LANES:
        lane, broker = BACKGROUND, None
    job = async_task(function, *args, broker=broker or get_broker(lane), cluster=lane, **options)
    return str(job)


def with_commit(put: Callable[[], object]) -> None:
    """Call ``put``, which enqueues jobs, so that they run only if the transaction is committed.

    Jobs in the database are written in the transaction itself: one commit writes all to the disk.
    Redis gets them after the commit.
    """
    if settings.Q_BROKER:
        transaction.on_commit(put)
    else:
        put()


def lane_settings(lane: str) -> dict[str, Any]:
    """Return django-q2's settings of a lane: Q_CLUSTER with the lane's own values."""
    common = {key: value for key, value in settings.Q_CLUSTER.items() if key != "ALT_CLUSTERS"}
    return {**common, **settings.Q_CLUSTER["ALT_CLUSTERS"].get(lane, {})}


def cluster_id(lane: str) -> UUID:
    """Return a new id for a lane's cluster; its heartbeats name their lane by nothing else."""
    return UUID(int=uuid.uuid4().int & ~0xFF | LANES.index(lane))


def lane_of(cluster: UUID) -> str | None:
    """Return the lane of a cluster by its id; None for the id of another program's cluster."""
    place = cluster.int & 0xFF
    return LANES[place] if place < len(LANES) else None
