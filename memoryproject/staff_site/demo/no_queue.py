"""A queue that takes jobs and keeps none.

The story does by itself what it needs. A running server would take its jobs while it is told, and
would find that they have waited for weeks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django_q.conf import Conf

from memoryproject.foundation.process.brokers import PatientBroker


class NoQueue(PatientBroker):
    """A broker of django-q2 for programs whose jobs nobody is to do."""

    def enqueue(self, task: str) -> str:
        return ""


@contextmanager
def without_jobs() -> Iterator[None]:
    """While the block runs, this process puts no job into a queue. Sweeps find the work later."""
    chosen = Conf.BROKER_CLASS
    Conf.BROKER_CLASS = f"{NoQueue.__module__}.{NoQueue.__qualname__}"
    try:
        yield
    finally:
        Conf.BROKER_CLASS = chosen
