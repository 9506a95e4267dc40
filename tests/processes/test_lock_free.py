"""What the processes of a cluster share, while some of them are killed."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import RawValue

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.process.lock_free import (
    BUFFER_BYTES,
    MAX_DIRECT_BYTES,
    STOP,
    LockFreeEvent,
    LockFreeQueue,
    LockFreeTimer,
)
from tests.processes.forks import FORK
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

WORKERS = 4
KILLS = 300
AFTER = 20


def fork(work: Callable[..., object], *arguments: object) -> ForkProcess:
    process = FORK.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def hand_on(jobs: LockFreeQueue, results: LockFreeQueue) -> None:
    for job in iter(jobs.get, STOP):
        results.put(job)


def give_out(jobs: LockFreeQueue, stopping: LockFreeEvent) -> None:
    number = 0
    while not stopping.is_set():
        jobs.put(number)
        number += 1


def drain(results: LockFreeQueue) -> list[object]:
    found = []
    while not results.empty():
        found.append(results.get())
    return found


def test_killed_workers_hold_up_nobody() -> None:
    """Killed while they read and write as fast as they can, hundreds of times."""
    jobs, results = LockFreeQueue(maxsize=WORKERS), LockFreeQueue()
    stopping = LockFreeEvent()
    chance = random.Random(20261125)
    workers = [fork(hand_on, jobs, results) for _ in range(WORKERS)]
    giver = fork(give_out, jobs, stopping)
    received: list[object] = []

    for _ in range(KILLS):
        # Each kill comes at another moment of the work.
        for _ in range(chance.randrange(20)):
            received.append(results.get())
        place = chance.randrange(WORKERS)
        os.kill(workers[place].pid or 0, signal.SIGKILL)
        workers[place].join()
        workers[place] = fork(hand_on, jobs, results)
    stopping.set()

    def drained() -> list[object]:
        received.extend(drain(results))
        return received

    wait_until(lambda: drained() and not giver.is_alive(), "the giver ends")

    for number in range(AFTER):
        jobs.put(f"after {number}")
    wait_until(
        lambda: len(after(drained())) == AFTER,
        "every job that was put after the last kill is done",
        seconds=30,
    )
    for _ in workers:
        jobs.put(STOP)
    for worker in workers:
        worker.join()
    assert sorted(after(received)) == sorted(f"after {number}" for number in range(AFTER))
    numbers = [each for each in received if isinstance(each, int)]
    assert len(numbers) == len(set(numbers)), "no job is done twice"
    # What a worker was at when it was killed is lost, and nothing else.
    assert max(numbers) + 1 - len(numbers) <= KILLS


def after(received: list[object]) -> list[str]:
    return [each for each in received if isinstance(each, str)]


def test_a_process_killed_while_it_looks_at_an_event_holds_up_nobody() -> None:
    event = LockFreeEvent()

    def look() -> None:
        while not event.is_set():
            pass

    for _ in range(50):
        looking = fork(look)
        os.kill(looking.pid or 0, signal.SIGKILL)
        looking.join()
    last = fork(look)
    assert not event.is_set()
    event.set()
    event.set()
    last.join()
    assert last.exitcode == 0
    assert event.wait()
    assert event.wait(timeout=0)


def test_one_job_at_most_waits_and_orders_to_stop_wait_for_nothing() -> None:
    jobs = LockFreeQueue(maxsize=4)
    put = RawValue("i", 0)

    def give() -> None:
        for number in range(100):
            jobs.put(number)
            put.value = number + 1

    giver = fork(give)
    for number in range(100):
        assert jobs.get() == number
        assert put.value <= number + 2
    giver.join()
    jobs.put("waits")
    for _ in range(WORKERS):
        jobs.put(STOP)
    assert [jobs.get() for _ in range(WORKERS + 1)] == ["waits", *[STOP] * WORKERS]
    assert jobs.empty()
    assert jobs.qsize() == 0


@given(
    size=st.one_of(
        st.integers(0, 200),
        st.integers(MAX_DIRECT_BYTES - 200, MAX_DIRECT_BYTES + 200),
        st.integers(BUFFER_BYTES, 4 * BUFFER_BYTES),
    ),
    text=st.text(),
)
def test_messages_of_any_size_come_as_they_were(size: int, text: str) -> None:
    queue = LockFreeQueue()
    message = {"args": (b"x" * size, text), "ack_id": None}
    queue.put(message)
    queue.put(text)
    assert queue.qsize() == 1
    assert queue.get() == message
    assert queue.get() == text
    assert queue.empty()


def test_large_messages_leave_no_open_files() -> None:
    queue = LockFreeQueue()
    opened = len(os.listdir("/dev/fd"))
    for _ in range(20):
        queue.put(b"x" * BUFFER_BYTES)
        queue.get()
    assert len(os.listdir("/dev/fd")) == opened


def test_who_waits_ends_with_the_parent() -> None:
    """Otherwise workers without a sentinel would take jobs and never finish them."""
    empty, full = LockFreeQueue(), LockFreeQueue(maxsize=1)
    full.put("nobody takes it")
    waiting = [RawValue("i", 0) for _ in range(2)]

    def wait_for(place: int) -> None:
        waiting[place].value = os.getpid()
        if place == 0:
            empty.get()
        else:
            full.put("in vain")

    def parent() -> None:
        for place in range(2):
            FORK.Process(target=wait_for, args=(place,)).start()
        wait_until(lambda: all(each.value for each in waiting), "both wait")
        os.kill(os.getpid(), signal.SIGKILL)

    # Daemons, which the other processes here are, may have no children.
    killed = FORK.Process(target=parent)
    killed.start()
    killed.join()
    wait_until(lambda: all(is_gone(each.value) for each in waiting), "both have ended", seconds=30)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_timer_runs_by_itself_and_only_its_worker_sets_it() -> None:
    timer = LockFreeTimer("f", -1)
    assert timer.value == -1

    def set_to(value: float) -> None:
        timer.value = value
        if timer.value > 0:
            timer.value += 3

    def value_set(value: float) -> float:
        fork(set_to, value).join()
        return timer.value

    with timer.get_lock():
        assert 600 < value_set(600) <= 603
        # The sentinel takes off a second each second; the time that passed is off already.
        timer.value -= 600
        assert 600 < timer.value <= 603
        assert value_set(-1) == -1
        timer.value -= 1
        assert timer.value == -1
        assert value_set(-2) == -2
        assert value_set(0) == 0
