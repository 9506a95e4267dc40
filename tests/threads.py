"""Work in other threads, each with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

from tests.processes.waiting import wait_until

T = TypeVar("T")


def begin(work: Callable[[], T]) -> Future[T]:
    """Begin the work in a thread. The future's result raises what the work raised."""
    pool = ThreadPoolExecutor(1)
    begun = pool.submit(_with_own_connection, work)
    pool.shutdown(wait=False)
    return begun


def begin_blocked(work: Callable[[], T]) -> Future[T]:
    """Begin work that this transaction blocks, and wait until it waits for a lock, or ends."""
    begun = begin(work)
    wait_until(lambda: begun.done() or connections_waiting(), "the thread waits for a lock")
    return begun


def in_threads(work: Callable[[], T], count: int) -> list[T]:
    """Do the same in several threads, which start together. Raises what one of them raised."""
    barrier = threading.Barrier(count)

    def run() -> T:
        barrier.wait()
        return work()

    begun = [begin(run) for _ in range(count)]
    return [each.result() for each in begun]


def connections_waiting() -> int:
    """How many connections wait for a lock. pg_stat_activity doesn't change in a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def _with_own_connection(work: Callable[[], T]) -> T:
    try:
        return work()
    finally:
        connection.close()
