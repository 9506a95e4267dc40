"""Detects whether the process that took a lease still runs.

A lease ends by its time in any case. On the same machine a dead owner is detected at once, so that
another worker takes the work of a killed one without waiting.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache

import psutil

# The process start is given by the wall clock, which may be set while a process runs.
CLOCK_SLACK_SECONDS = 60.0


@lru_cache(maxsize=8)
def _identity(pid: int) -> str:
    # The process's start distinguishes it from a later one with the same id.
    return f"{socket.gethostname()}:{pid}:{psutil.Process(pid).create_time():.2f}"


def this_process() -> str:
    """Return the name under which this process owns its leases."""
    return _identity(os.getpid())


def owner_is_gone(owner: str) -> bool:
    """Return whether the owner certainly ran on this machine and no longer runs."""
    host, _, rest = owner.partition(":")
    pid, _, started = rest.partition(":")
    if host != socket.gethostname() or not pid.isdigit() or not _is_number(started):
        return False
    try:
        process = psutil.Process(int(pid))
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return zombie or abs(process.create_time() - float(started)) > CLOCK_SLACK_SECONDS
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
