"""Work in other threads, each with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from django.db import connection

from tests.processes.waiting import PATIENCE_SECONDS, wait_until

T = TypeVar("T")


def begin(work: Callable[[], T]) -> Future[T]:
    """Begin the work in a thread. The future's result raises what the work raised."""
    pool = ThreadPoolExecutor(1)
    begun = pool.submit(_with_own_connection, work)
    pool.shutdown(wait=False)
    return begun


def elsewhere(work: Callable[[], T]) -> T:
    """Do the work in a thread, and wait for its end."""
    return begin(work).result()


def begin_blocked(work: Callable[[], T]) -> Future[T]:
    """Begin work that this transaction blocks, and wait until it waits for a lock, or ends."""
    return begin_all_blocked(work)[0]


def begin_all_blocked(*works: Callable[[], T]) -> list[Future[T]]:
    """Begin works that this transaction blocks, and wait until each waits for a lock, or ends."""
    begun = [begin(work) for work in works]

    def none_runs() -> bool:
        return connections_waiting() + sum(each.done() for each in begun) >= len(begun)

    wait_until(none_runs, "the threads wait for locks")
    return begun


def at_once(*works: Callable[[], T]) -> list[T]:
    """Do these in threads that start together, and wait for all. Raises what one of them raised."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        barrier.wait()
        return work()

    begun = [begin(partial(run, work)) for work in works]
    wait(begun, PATIENCE_SECONDS)
    return [each.result(0) for each in begun]


def in_threads(work: Callable[[], T], count: int) -> list[T]:
    """Do the same in several threads that start together."""
    return at_once(*[work] * count)


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
