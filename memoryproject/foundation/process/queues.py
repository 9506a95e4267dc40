"""django-q2's queues, made safe against processes that are killed.

A waiting worker of the stock cluster blocks inside ``multiprocessing.Queue.get`` and holds the
queue's lock meanwhile: if it is killed there, the lock is never released and every other worker
waits forever. If the cluster's sentinel is killed, its workers and its pusher live on, take jobs
from the broker and never finish them.
"""

from __future__ import annotations

import os
import time
from functools import lru_cache
from queue import Empty
from typing import Any

from django_q import cluster
from django_q.queues import Queue

# The longer nothing came, the longer are the pauses: waiting workers must not use a CPU.
FIRST_PAUSE = 0.01
MAX_PAUSE = 0.06


@lru_cache(maxsize=4)
def _parent_at_first(pid: int) -> int:
    return os.getppid()


class RecoveringQueue(Queue):  # type: ignore[misc]
    """A queue whose lock is not held while waiting, and whose users end with their parent."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        parent = _parent_at_first(os.getpid())
        pause = FIRST_PAUSE
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return super().get(block=False)
            except Empty:
                if not block or (deadline is not None and time.monotonic() >= deadline):
                    raise
            if os.getppid() != parent:
                raise SystemExit("The cluster is gone.")
            time.sleep(pause)
            pause = min(pause * 1.1, MAX_PAUSE)


def use_recovering_queues() -> None:
    """Make clusters of this process and of its child processes use the queues above.

    django-q2 has no setting for it.
    """
    cluster.Queue = RecoveringQueue
