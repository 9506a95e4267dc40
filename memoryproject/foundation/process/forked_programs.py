"""Keep programs running as children that are forked from this process, and share its memory.

This process does nothing else, so that its memory stays what was loaded. A program that ends is
forked again at once; to load everything again would take seconds, and more on a busy machine.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from types import FrameType

from django.db import connections

if sys.platform == "linux":
    from setproctitle import setproctitle

logger = logging.getLogger(__name__)

# What ends at once is not forked more often than this.
RESTART_SECONDS = 1.0
# The longest time until the end of a program is noticed. Its own children keep open what tells of
# it, and may be at work for minutes after it was killed.
LOOK_SECONDS = 1.0
STOPPING = {signal.SIGTERM, signal.SIGINT}

_FORK = multiprocessing.get_context("fork")


def fork(
    name: str, target: Callable[..., object], *arguments: object, daemon: bool = True
) -> ForkProcess:
    """Start a child process.

    ``name``: what `ps` and `top` call it, after "memory"; or after "qcluster", once it does jobs
    for django-q2. ``daemon``: it has no children, and ends with this one's
    errors.

    It ignores Ctrl-C, which reaches all processes of a terminal: parents tell their children when
    to end.
    """
    # Two processes must not share a connection.
    connections.close_all()
    process = _FORK.Process(
        name=name, target=_run_child, args=(name, target, arguments), daemon=daemon
    )
    # A signal that the child got before it has handlers of its own would be lost.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    process.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return process


def name_process(title: str) -> None:
    """Set the name of this process in `ps` and `top`. On macOS that would crash forked ones."""
    if sys.platform == "linux":
        setproctitle(title)


def _run_child(name: str, target: Callable[..., object], arguments: tuple[object, ...]) -> None:
    name_process(f"memory {name}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    target(*arguments)


@dataclass
class _Forked:
    """A program. It is called with the id of the process that it is to end with."""

    name: str
    program: Callable[[int], object]
    process: ForkProcess | None = None
    started_at: float = float("-inf")


class ForkedPrograms:
    """Runs programs until SIGTERM or SIGINT; on SIGTERM they end."""

    def __init__(self, programs: Mapping[str, Callable[[int], object]]) -> None:
        self._all = [_Forked(name, program) for name, program in programs.items()]
        self._is_stopping = False

    def run(self) -> None:
        """Return when the programs have ended after a signal."""
        for number in STOPPING:
            signal.signal(number, self._stop)
        while True:
            for each in self._all:
                self._keep_running(each)
            running = [each.process for each in self._all if each.process is not None]
            if self._is_stopping and not running:
                return
            wait([process.sentinel for process in running], LOOK_SECONDS)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        for each in self._all:
            if each.process is not None:
                each.process.terminate()

    def _keep_running(self, each: _Forked) -> None:
        """Fork the program where it doesn't run."""
        if each.process is not None:
            if each.process.is_alive():
                return
            if not self._is_stopping:
                logger.error("%s ended (%s): again.", each.name, each.process.exitcode)
            ended, each.process = each.process, None
            ended.close()
        if self._is_stopping or time.monotonic() - each.started_at < RESTART_SECONDS:
            return
        each.started_at = time.monotonic()
        each.process = fork(each.name, each.program, os.getpid(), daemon=False)
        if self._is_stopping:
            # The signal came before the process was known.
            each.process.terminate()
