"""Run django-q2's cluster, and end it as a whole where one of its processes dies."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import time
from importlib import import_module
from typing import Any

import psutil
from django_q.conf import Conf
from django_q.management.commands import qcluster

from memoryproject.checks import SETTINGS
from memoryproject.programs import end_with_parent

# Jobs that are taken meanwhile wait for the sweep.
LOOK_SECONDS = 0.25
# While they start: one that is killed before it was seen isn't missed.
FIRST_LOOK_SECONDS = 0.02


class Command(qcluster.Command):  # type: ignore[misc]
    """django-q2's own command.

    Its processes share locks on their queues. One that is killed may take a lock with it, and then
    the cluster seems to work but does no job. So all of it is ended, for the process manager to
    start it again. What its workers had in hand is found by the sweep.
    """

    # Checking all would load the staff's pages and the API, which no worker needs.
    requires_system_checks = (SETTINGS,)

    def handle(self, *args: Any, **options: Any) -> None:
        # On Linux none of them outlives the one that started it.
        os.register_at_fork(after_in_child=lambda: end_with_parent(signal.SIGKILL))
        # Loaded before the fork, it is in memory once, and the garbage collector leaves it there.
        import_module("sessions_app.tasks")
        gc.freeze()
        super().handle(*args, **options)
        if not options["run_once"]:
            self._watch()

    def _watch(self) -> None:
        """Return when the cluster has stopped; end this process where a part of it was killed.

        A signal to stop is handled in this thread, and until then nothing ends by itself.
        """
        (sentinel,) = multiprocessing.active_children()
        started: list[psutil.Process] = []
        while sentinel.is_alive():
            # Workers, monitor and pusher.
            is_whole = len(started) >= Conf.WORKERS + 2
            if not is_whole:
                started = psutil.Process(sentinel.pid).children()
            elif not all(each.is_running() for each in started):
                self.stderr.write("A process of the cluster was killed: all of it is ended.")
                sentinel.kill()
                for each in started:
                    if each.is_running():
                        each.kill()
                sys.exit(1)
            time.sleep(LOOK_SECONDS if is_whole else FIRST_LOOK_SECONDS)
        if sentinel.exitcode:
            sys.exit(1)
