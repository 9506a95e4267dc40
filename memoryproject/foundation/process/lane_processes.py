"""Lead the workers of all lanes, which are forked from this process.

A worker that ends is replaced. Workers whose leader is gone end after their jobs.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from types import FrameType

from django.db import Error, connections
from django.db.models import F
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import Schedule
from django_q.scheduler import scheduler
from django_q.status import Stat
from django_q.worker import worker

from memoryproject.foundation.process.brokers import jobs_hold
from memoryproject.foundation.process.forked_programs import (
    RESTART_SECONDS,
    fork,
    name_process,
)
from memoryproject.foundation.process.job_queue import (
    JobResults,
    JobSource,
    JobTimer,
    WorkerJobs,
)
from memoryproject.foundation.process.lanes import (
    SCHEDULES,
    cluster_id,
    lane_settings,
    workers_changed,
)

# Bring back the times that a clock which was set back has left in the far future.

MINUTE = timedelta(minutes=1)


def future_times_repair(now: datetime) -> int:
    """Make schedules due whose time is later than anything sets it; return how many.

    The next run of a schedule in minutes is at most so many minutes away.
    """
    in_minutes = Schedule.objects.filter(schedule_type=Schedule.MINUTES)
    later = now + MINUTE + F("minutes") * MINUTE
    schedules = in_minutes.filter(next_run__gt=later).update(next_run=now)
    if schedules:
        logger.warning("The clock was set back: %d schedules are due now.", schedules)
    return schedules


logger = logging.getLogger(__name__)

# The longest time until a signal to stop is noticed.
LOOK_SECONDS = 0.5
BEAT_SECONDS = 2.0
SCHEDULE_SECONDS = 30.0
# django-q2's states of a timer.
OVERDUE, RECYCLED = 0, -2


@dataclass
class WorkerSlot:
    """The slot of one worker."""

    process: ForkProcess | None = None
    timer: JobTimer = field(default_factory=JobTimer)
    started_at: float = float("-inf")


class Lane:
    """A lane with its workers. django-q2's Stat reads the attributes without a comment here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.jobs = JobSource(partial(get_broker, name))
        self.slots = [WorkerSlot() for _ in range(lane_settings(name)["workers"])]
        self.is_stopping = False
        # Jobs of workers that ended.
        self.left: set[int] = set()

        self.pid = os.getpid()
        self.parent_pid = None
        self.cluster_id = cluster_id(name)
        self.broker = get_broker(name)
        self.tob = timezone.now()
        self.reincarnations = 0
        self.monitor = None
        self.pusher = None

    @property
    def pool(self) -> list[ForkProcess]:
        return [slot.process for slot in self.slots if slot.process is not None]

    @property
    def held(self) -> list[int]:
        """Return the jobs that living workers have."""
        return [job for slot in self.slots if slot.process is not None and (job := slot.timer.job)]

    def status(self) -> str:
        if self.is_stopping:
            return Conf.STOPPING if self.pool else Conf.STOPPED
        is_working = any(slot.timer.value >= 0 for slot in self.slots)
        return Conf.WORKING if is_working else Conf.IDLE

    def stop(self) -> None:
        """Let the workers end after their jobs."""
        self.is_stopping = True
        self.jobs.stop()

    def replace_ended_workers(self) -> bool:
        """Replace workers that ended or whose time is over. Return whether one left its job."""
        has_left_jobs = False
        stuck = self.jobs.stuck_worker()
        for slot in self.slots:
            if slot.process is not None:
                if slot.timer.value == OVERDUE or slot.process.pid == stuck:
                    slot.process.kill()
                if slot.process.is_alive():
                    continue
                has_left_jobs |= self._note_end(slot, slot.process)
            if not self.is_stopping and time.monotonic() - slot.started_at >= RESTART_SECONDS:
                self._start_worker(slot)
        return has_left_jobs

    def _note_end(self, slot: WorkerSlot, process: ForkProcess) -> bool:
        """Note the end of a worker. Return whether it may have left a job."""
        is_expected = slot.timer.value == RECYCLED or self.is_stopping
        if not is_expected:
            logger.error(
                "A worker of the lane %s ended (%s) and is replaced.", self.name, process.exitcode
            )
        if slot.timer.job:
            self.left.add(slot.timer.job)
        process.close()
        slot.process = None
        self.reincarnations += 1
        return not is_expected

    def _start_worker(self, slot: WorkerSlot) -> None:
        slot.timer = JobTimer()
        slot.started_at = time.monotonic()
        slot.process = fork(self.name, work, self.name, self.jobs, slot.timer)


class Leader:
    """Keeps the workers of the lanes running until SIGTERM, or until its parent is gone."""

    def __init__(self, names: Sequence[str], parent: int) -> None:
        self._parent = parent
        # There are no queues whose sizes a heartbeat could say.
        Conf.QSIZE = False
        self._lanes = [Lane(name) for name in names]
        self._is_stopping = False
        self._sweeper: ForkProcess | None = None
        # Another group of workers may have been killed before.
        self._is_sweep_due = True
        self._beat_at = time.monotonic()
        self._schedules_at = time.monotonic() + SCHEDULE_SECONDS

    def run(self) -> None:
        """Run the lanes; return when they have ended."""
        signal.signal(signal.SIGTERM, self._stop)
        while not self._is_stopping and os.getppid() == self._parent:
            self._replace_ended_workers()
            self._sweep()
            self._send_heartbeats()
            self._run_scheduler()
            self._wait()
        for lane in self._lanes:
            lane.stop()
        self._beat_at = time.monotonic()
        while any(lane.pool for lane in self._lanes):
            self._send_heartbeats()
            self._wait()
            self._replace_ended_workers()
        self._hold_jobs()
        for lane in self._lanes:
            Stat(lane).save()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True

    def _replace_ended_workers(self) -> None:
        for lane in self._lanes:
            self._is_sweep_due |= lane.replace_ended_workers()
            if lane.left:
                # Others can do what they had, at once.
                self._beat_at = time.monotonic()

    def _sweep(self) -> None:
        """Let a process of its own say that workers started: what it loads ends with it."""
        if self._sweeper is not None and not self._sweeper.is_alive():
            self._sweeper.close()
            self._sweeper = None
        if self._is_sweep_due and self._sweeper is None:
            self._is_sweep_due = False
            self._sweeper = fork("sweep", send_changed)

    def _send_heartbeats(self) -> None:
        """Store the heartbeats, and hold the jobs. django-q2 logs where it can't."""
        now = time.monotonic()
        if now >= self._beat_at:
            self._beat_at = now + BEAT_SECONDS
            self._hold_jobs()
            for lane in self._lanes:
                Stat(lane).save()

    def _hold_jobs(self) -> None:
        lanes = self._lanes
        held = [job for lane in lanes for job in lane.held]
        left = [job for lane in lanes for job in lane.left]
        with _errors_logged("Jobs could not be held."):
            jobs_hold(held=held, left=left, now=timezone.now())
            for lane in lanes:
                lane.left.clear()

    def _run_scheduler(self) -> None:
        """Put the jobs of due schedules into the queues."""
        now = time.monotonic()
        if now < self._schedules_at:
            return
        self._schedules_at = now + SCHEDULE_SECONDS
        for lane in self._lanes:
            use_lane(lane.name)
            if lane.name == SCHEDULES:
                # Nothing is left to a job: jobs wait for the schedules.
                with _errors_logged("The times of schedules could not be looked at."):
                    future_times_repair(timezone.now())
            scheduler(broker=lane.broker)

    def _wait(self) -> None:
        """Wait until a process ends, but not long."""
        wait([process.sentinel for process in self._processes()], LOOK_SECONDS)

    def _processes(self) -> Iterator[ForkProcess]:
        for lane in self._lanes:
            yield from lane.pool
        if self._sweeper is not None:
            yield self._sweeper


def lead(names: Sequence[str], parent: int) -> None:
    """Run the lanes. ``parent``: the process with which they end."""
    name_process("qcluster leader")
    # django-q2's own way to name a cluster would change the lanes of this process's children.
    os.environ.pop("Q_CLUSTER_NAME", None)
    Leader(names, parent).run()


def work(name: str, jobs: JobSource, timer: JobTimer) -> None:
    """Do the jobs of a lane until there are to be no more."""
    use_lane(name)
    worker(WorkerJobs(jobs, timer), JobResults(get_broker(name)), timer, Conf.TIMEOUT)


def send_changed() -> None:
    workers_changed.send(sender=Leader)


def use_lane(name: str) -> None:
    """Let django-q2 work on the lane in this process.

    It reads its settings once, when it is imported; these are the ones that differ.
    """
    chosen = lane_settings(name)
    Conf.CLUSTER_NAME = name
    Conf.TIMEOUT = chosen["timeout"]
    Conf.POLL = chosen["poll"]


@contextmanager
def _errors_logged(message: str) -> Iterator[None]:
    """Log the database's errors: what is done here is done again soon."""
    try:
        yield
    except Error:
        logger.warning(message, exc_info=True)
        connections.close_all()
