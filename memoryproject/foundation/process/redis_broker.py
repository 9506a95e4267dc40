"""django-q2's broker for Redis, whose package is slow to import."""

from django_q.brokers.redis_broker import Redis

from memoryproject.foundation.process.jobs import PatientBroker


class RedisBroker(PatientBroker, Redis):  # type: ignore[misc]
    """Jobs and heartbeats in Redis."""
