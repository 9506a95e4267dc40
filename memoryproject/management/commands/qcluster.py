"""Run django-q2's cluster, and end it as a whole where one of its processes dies."""

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Any

import psutil
from django_q.conf import Conf
from django_q.management.commands import qcluster

from memoryproject.checks import SETTINGS
from memoryproject.programs import end_with_parent

logger = logging.getLogger(__name__)

# Jobs that are taken meanwhile wait for the sweep.
LOOK_SECONDS = 0.25
# Workers, monitor and pusher; the guard started them.
MEMBERS = Conf.WORKERS + 2
# The jobs that have begun when the cluster is told to stop have so long: docs/deploy.md.
STOP_SECONDS = 3.0


class Command(qcluster.Command):  # type: ignore[misc]
    """django-q2's own command.

    Its processes share locks on their queues. One that is killed may take a lock with it, and then
    the cluster seems to work but does no job. So all of it is ended, for the process manager to
    start it again. What its workers had in hand is found by the sweep.
    """

    # Checking all would load the staff's pages and the API, which no worker needs.
    requires_system_checks = (SETTINGS,)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Of all the cluster's processes, in memory that they share.
        self._started = multiprocessing.RawValue("i")

    def handle(self, *args: Any, **options: Any) -> None:
        # On Linux none of them outlives the one that started it.
        os.register_at_fork(
            after_in_parent=self._count, after_in_child=lambda: end_with_parent(signal.SIGKILL)
        )
        # Loaded before the fork, it is in memory once, and the garbage collector leaves it there.
        import_module("sessions_app.tasks")
        gc.freeze()
        super().handle(*args, **options)
        if not options["run_once"]:
            (sentinel,) = multiprocessing.active_children()
            stop_in_time(sentinel)
            self._watch(sentinel)

    def _count(self) -> None:
        # The first process starts the guard, which then starts the others: never both at once.
        self._started.value += 1

    def _watch(self, sentinel: multiprocessing.process.BaseProcess) -> None:
        """Return when the cluster has stopped; end this process where a part of it was killed.

        A signal to stop is handled in this thread, and until then nothing ends by itself. Whoever
        is killed before it was seen here is missed all the same: the guard starts another.
        """
        started: list[psutil.Process] = []
        while sentinel.is_alive():
            is_whole = len(started) >= MEMBERS
            if not is_whole:
                started = psutil.Process(sentinel.pid).children()
            elif self._started.value > 1 + MEMBERS or not all(
                each.is_running() for each in started
            ):
                logger.error("A process of the cluster was killed: all of it is ended.")
                kill_cluster(sentinel)
                sys.exit(1)
            time.sleep(LOOK_SECONDS)
        if sentinel.exitcode:
            sys.exit(1)


def stop_in_time(sentinel: multiprocessing.process.BaseProcess) -> None:
    """Let a signal to stop end the cluster within STOP_SECONDS, whatever its jobs do.

    django-q2 waits for them without end. Their leases end with their process.
    """
    stop: Any = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        deadline = threading.Timer(STOP_SECONDS, kill_cluster, [sentinel])
        deadline.daemon = True
        deadline.start()
        stop(number, frame)
        if sentinel.exitcode:
            sys.exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def kill_cluster(sentinel: multiprocessing.process.BaseProcess) -> None:
    """Kill the process that the others come from, and those that outlive it."""
    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(sentinel.pid).children()
        sentinel.kill()
        for each in started:
            if each.is_running():
                each.kill()
