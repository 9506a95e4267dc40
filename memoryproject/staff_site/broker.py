"""Queries to the broker of background jobs that never wait longer than a moment."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import override
from django_q.brokers import Broker, get_broker
from django_q.status import Stat

from memoryproject.foundation.process import lanes

WAIT_SECONDS = 2.0
# The states in which a cluster takes jobs.
WORKING = ("Idle", "Working")


class BrokerGoneError(Exception):
    """The broker can't be reached now."""


def is_redis() -> bool:
    """Return whether the broker is Redis; otherwise the jobs are in the database."""
    return bool(settings.Q_BROKER)


def broker_quick(lane: str = lanes.ANSWERS) -> Broker:
    """Return the configured broker of a lane; a Redis with a connection that times out soon."""
    return _redis_broker(lane) if is_redis() else get_broker(lane)


def _redis_broker(lane: str) -> Broker:
    from redis import Redis  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.retry import Retry  # noqa: PLC0415

    from memoryproject.foundation.process.redis_broker import RedisBroker  # noqa: PLC0415 slow

    broker = RedisBroker(lane)
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
    """Return the number of jobs of all lanes that no worker has taken yet.

    Raises BrokerGoneError.
    """
    try:
        return sum(int(broker_quick(lane).queue_size()) for lane in lanes.LANES)
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


def enqueue(function: str, *args: Any, lane: str = lanes.BACKGROUND, **options: Any) -> str:
    """Put a job into a lane's queue and return its id. Raises BrokerGoneError."""
    try:
        return lanes.enqueue(function, *args, lane=lane, broker=broker_quick(lane), **options)
    except _broker_errors() as error:
        raise BrokerGoneError(type(error).__name__) from None
