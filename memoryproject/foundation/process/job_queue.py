"""The queue of a lane as its workers see it: they take jobs and store results themselves.

A cluster of django-q2 has a process that takes the jobs from the broker and one that stores the
results. Each of them holds as much memory as a worker, and what it has in hand is lost with it.
Here a worker that is killed loses its own job and nothing else.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from multiprocessing.sharedctypes import RawValue
from typing import Any

from django.db import connections
from django_q.brokers import Broker
from django_q.conf import Conf
from django_q.monitor import monitor
from django_q.signals import post_execute
from django_q.signing import BadSignature, SignedPackage
from django_q.utils import get_func_repr

from memoryproject.foundation.process.brokers import DatabaseBroker

logger = logging.getLogger(__name__)

# Ends django-q2's loops over a queue.
STOP = "STOP"
# The pause after a failure of the broker.
FAILED_SECONDS = 1.0
# Brokers answer within a second. Whoever asks for longer was stopped, or waits for a dead machine.
ASK_SECONDS = 15.0


class JobSource:
    """Gives the next job to one of the workers, which are forked by the process that makes it.

    The workers take turns: one asks the broker, the others wait for a lock on a file. The kernel
    takes the lock from a process that is killed, but not from one that is stopped: see
    ``stuck_worker``.
    """

    def __init__(self, make_broker: Callable[[], Broker]) -> None:
        self._make_broker = make_broker
        self._broker: Broker | None = None
        self._turn, path = tempfile.mkstemp(prefix="turn-")
        os.unlink(path)
        self._parent = os.getpid()
        self._stopped = RawValue("b", 0)
        # Who asks, and since when by the machine's monotonic clock; 0 while nobody does.
        self._asker = RawValue("i", 0)
        self._asks_since = RawValue("d", 0)
        self._is_failing = False

    def stop(self) -> None:
        """Give out no more jobs."""
        self._stopped.value = 1

    def get(self) -> Any:
        """Wait for a job and take it. Return STOP after ``stop``, and where the parent is gone."""
        fcntl.lockf(self._turn, fcntl.LOCK_EX)
        try:
            self._asks_since.value = time.monotonic()
            self._asker.value = os.getpid()
            while not self._stopped.value and os.getppid() == self._parent:
                self._asks_since.value = time.monotonic()
                if (job := self._take()) is not None:
                    return job
            return STOP
        finally:
            self._asks_since.value = 0
            fcntl.lockf(self._turn, fcntl.LOCK_UN)

    def stuck_worker(self, seconds: float = ASK_SECONDS) -> int | None:
        """Return the process that has asked the broker for so long, if any: the others wait for it.

        It may be killed: a job that it was about to take is given out again.
        """
        since = float(self._asks_since.value)
        is_stuck = since > 0 and time.monotonic() - since >= seconds
        return int(self._asker.value) if is_stuck else None

    def _take(self) -> dict[str, Any] | None:
        """Take a job, or return None after a moment."""
        try:
            # Not shared with other processes: made after the fork.
            self._broker = self._broker or self._make_broker()
            taken = self._broker.dequeue()
        except Exception:
            if not self._is_failing:
                logger.exception("Jobs can't be taken. This is tried until it succeeds.")
            self._is_failing = True
            connections.close_all()
            time.sleep(FAILED_SECONDS)
            return None
        self._is_failing = False
        # One at most, by the setting "bulk".
        for ack_id, package in taken or ():
            try:
                job: dict[str, Any] = SignedPackage.loads(package)
            except (TypeError, BadSignature):
                logger.exception("A job could not be read and is dropped.")
                self._broker.fail(ack_id)
            else:
                return {**job, "cluster": Conf.CLUSTER_NAME, "ack_id": ack_id}
        return None


class WorkerJobs:
    """Gives a lane's jobs to one worker, and notes in its timer the one that it has."""

    def __init__(self, source: JobSource, timer: JobTimer) -> None:
        self._source = source
        self._timer = timer

    def get(self) -> Any:
        # The last one is done, or its result could not be stored: it is no longer held.
        self._timer.job = 0
        job = self._source.get()
        if job != STOP:
            # Redis has given its jobs away and names none.
            self._timer.job = job["ack_id"] or 0
        return job


class JobResults:
    """Stores the results of one worker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def put(self, job: dict[str, Any]) -> None:
        """Store the result of a job, and remove the job from the queue."""
        try:
            if isinstance(self._broker, DatabaseBroker) and _is_plain(job):
                self._broker.finish(job, get_func_repr(job["func"]))
                post_execute.send(sender="django_q", task=job)
            else:
                monitor(_OneResult(job), self._broker)
        except Exception:
            logger.exception("A result could not be stored. Its job is given out again.")
            connections.close_all()


def _is_plain(job: dict[str, Any]) -> bool:
    """Return whether a job succeeded, and nothing follows on it but its row."""
    follows = ("cached", "chain", "hook", "save", "sync")
    return bool(job["success"]) and not any(name in job for name in follows)


class _OneResult:
    """The queue from which django-q2's monitor takes this result, and then its end."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._left: list[Any] = [STOP, job]

    def get(self) -> Any:
        return self._left.pop()


class JobTimer:
    """The time that is left for a worker's job. The worker sets it, its parent reads it.

    ``value``: seconds left, or 0 where they are over, or one of django-q2's states: -1 idle or
    without a limit, -2 to be recycled. No lock: a killed worker would never release it.
    """

    def __init__(self) -> None:
        # A state, or a time of the machine's monotonic clock. It is written in one step.
        self._kept = RawValue("d", -1)
        self._job = RawValue("q", 0)

    def get_lock(self) -> nullcontext[None]:
        return nullcontext()

    @property
    def value(self) -> float:
        kept = float(self._kept.value)
        return max(kept - time.monotonic(), 0.0) if kept > 0 else kept

    @value.setter
    def value(self, seconds: float) -> None:
        self._kept.value = time.monotonic() + seconds if seconds > 0 else seconds

    @property
    def job(self) -> int:
        return int(self._job.value)

    @job.setter
    def job(self, key: int) -> None:
        self._job.value = key
