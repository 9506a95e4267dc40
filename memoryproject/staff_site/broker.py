"""Queries to the broker of background jobs that never wait longer than a moment."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import override
from django_q.brokers import Broker
from django_q.brokers.orm import ORM
from django_q.status import Stat
from django_q.tasks import async_task

WAIT_SECONDS = 2.0
# The states in which a cluster takes jobs.
WORKING = ("Idle", "Working")


class BrokerGoneError(Exception):
    """The broker can't be reached now."""


def is_redis() -> bool:
    """Return whether the broker is Redis; otherwise the jobs are in the database."""
    return bool(settings.Q_BROKER)


def broker_quick() -> Broker:
    """Return the configured broker; a Redis with a connection that times out soon."""
    return _redis_broker() if is_redis() else ORM()


def _redis_broker() -> Broker:
    from django_q.brokers.redis_broker import Redis as RedisBroker  # noqa: PLC0415 slow to import
    from redis import Redis  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    broker = RedisBroker()
    broker.connection = Redis.from_url(
        settings.Q_BROKER,
        socket_connect_timeout=WAIT_SECONDS,
        socket_timeout=WAIT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    return broker


@cache
def _redis_errors() -> tuple[type[Exception], ...]:
    from redis.exceptions import RedisError  # noqa: PLC0415 slow to import

    return (RedisError, OSError)


def _broker_errors() -> tuple[type[Exception], ...]:
    return _redis_errors() if is_redis() else (OSError,)


def queue_depth() -> int:
    """Return the number of jobs that no worker has taken yet. Raises BrokerGoneError."""
    try:
        return int(broker_quick().queue_size())
    except _broker_errors() as error:
        raise BrokerGoneError(type(error).__name__) from None


def clusters() -> list[Stat]:
    """Return the workers' heartbeats of the last seconds. Raises BrokerGoneError."""
    try:
        return list(Stat.get_all(broker_quick()))
    except _broker_errors() as error:
        raise BrokerGoneError(type(error).__name__) from None
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


def enqueue(function: str, *args: Any, **options: Any) -> str:
    """Put a job into the queue and return its id. Raises BrokerGoneError."""
    try:
        return str(async_task(function, *args, broker=broker_quick(), **options))
    except _broker_errors() as error:
        raise BrokerGoneError(type(error).__name__) from None
