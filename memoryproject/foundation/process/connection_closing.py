"""Run work in threads that leave no connection to the database open."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connections

P = ParamSpec("P")
T = TypeVar("T")


class ConnectionClosingExecutor(ThreadPoolExecutor):
    """A pool whose threads close their connections after each piece of work.

    Django opens connections for each thread, and closes them at the end of requests only: those of
    other threads would stay open, idle, as long as the threads live.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See Executor.submit."""

        def run() -> T:
            try:
                return fn(*args, **kwargs)
            finally:
                connections.close_all()

        return super().submit(run)
