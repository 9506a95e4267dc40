"""Run the lanes of background work as child processes of one process.

The children are forked, so that they share the memory of what was imported. A lane that ends is
started again; when this process ends, the lanes end.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from types import FrameType

from django.db import Error, connection, connections
from django.utils import timezone
from django_q.cluster import Cluster
from django_q.conf import Conf

from memoryproject.foundation.process.future_times import future_times_repair
from memoryproject.foundation.process.lanes import SCHEDULES, cluster_id, lane_settings

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
# A lane that ends at once is started again after 1, 2, 4 … seconds.
MAX_RESTART_SECONDS = 30.0
STEADY_SECONDS = 60.0
REPAIR_SECONDS = 30.0


@dataclass
class Lane:
    """A running lane. ``wait``: seconds before its next start. ``due_at``: its next start."""

    name: str
    process: ForkProcess | None = None
    started_at: float = 0.0
    due_at: float = 0.0
    wait: float = 1.0


class LaneProcesses:
    """Keeps the lanes running until SIGTERM or SIGINT."""

    def __init__(self, names: Sequence[str]) -> None:
        self._lanes = [Lane(name) for name in names]
        self._stopping = False

    def run(self) -> None:
        """Run the lanes; return when they have ended."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        connections.close_all()
        while not self._stopping:
            for lane in self._lanes:
                self._tend(lane)
            time.sleep(LOOK_SECONDS)
        for lane in self._lanes:
            if lane.process is not None:
                lane.process.join()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        for lane in self._lanes:
            if lane.process is not None and lane.process.pid:
                with suppress(ProcessLookupError):
                    os.kill(lane.process.pid, signal.SIGTERM)

    def _tend(self, lane: Lane) -> None:
        """Start the lane, or start it again where it has ended."""
        now = time.monotonic()
        if lane.process is not None:
            if lane.process.is_alive():
                return
            self._clear(lane, lane.process, now)
        if now < lane.due_at or self._stopping:
            return
        context = multiprocessing.get_context("fork")
        lane.process = context.Process(
            target=run_lane, args=(lane.name, os.getpid()), name=f"lane {lane.name}"
        )
        lane.process.start()
        lane.started_at = now
        if self._stopping:
            # The signal came before the process was known.
            self._stop(signal.SIGTERM, None)

    def _clear(self, lane: Lane, process: ForkProcess, now: float) -> None:
        """End what is left of a lane that has ended, and set the time of its next start."""
        logger.error(
            "The workers of the lane %s ended (%s) and are started again.",
            lane.name,
            process.exitcode,
        )
        if process.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.close()
        lane.process = None
        steady = now - lane.started_at > STEADY_SECONDS
        lane.wait = 1.0 if steady else min(lane.wait * 2, MAX_RESTART_SECONDS)
        lane.due_at = now + lane.wait


def run_lane(name: str, parent: int) -> None:
    """Run one lane's cluster in this process until it is stopped or its parent process ends.

    ``parent``: the parent's process id, which may have ended before this process looks. The
    processes of a lane are a group of their own, so that all of them can be ended together.
    """
    os.setsid()
    use_lane(name)
    cluster = Cluster()
    cluster.cluster_id = cluster_id(name)
    cluster.start()
    repair_at = time.monotonic()
    while cluster.sentinel is not None and cluster.sentinel.is_alive():
        if os.getppid() != parent:
            cluster.stop()
            return
        if name == SCHEDULES and time.monotonic() >= repair_at:
            _times_repair()
            repair_at = time.monotonic() + REPAIR_SECONDS
        time.sleep(LOOK_SECONDS)


def _times_repair() -> None:
    """Repair times in the future. Nothing is left to a job: jobs are what it repairs."""
    try:
        future_times_repair(timezone.now())
    except Error:
        logger.warning("The times of jobs could not be looked at.", exc_info=True)
        connection.close()


def use_lane(name: str) -> None:
    """Let django-q2's clusters of this process work on the lane.

    django-q2 reads its settings once, when it is imported; these are the ones that differ.
    """
    chosen = lane_settings(name)
    Conf.CLUSTER_NAME = name
    Conf.WORKERS = chosen["workers"]
    Conf.QUEUE_LIMIT = chosen["queue_limit"]
    Conf.TIMEOUT = chosen["timeout"]
    Conf.RETRY = chosen["retry"]
    Conf.POLL = chosen["poll"]
