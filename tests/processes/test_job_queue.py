"""How the workers of a lane take jobs from its queue, while some of them are killed."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import RawValue

import psutil
import pytest
from django.db import connections
from django_q.brokers import Broker
from django_q.signing import SignedPackage

from memoryproject.foundation.process.job_queue import STOP, JobSource, JobTimer
from tests.processes.forks import FORK
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

WORKERS = 4
KILLS = 300
JOBS = 3_000


class Pipe:
    """Messages between processes; the kernel keeps those that nobody has taken yet."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)

    def send(self, text: str) -> None:
        self._writer.send(text.encode())

    def receive(self, seconds: float) -> str | None:
        """Take a message; wait at most so long for one."""
        if select.select([self._reader], [], [], seconds)[0]:
            return self._reader.recv(4096).decode()
        return None

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


@contextmanager
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


class PipeBroker(Broker):  # type: ignore[misc]
    """Gives out what a pipe has; its jobs are named by numbers."""

    def __init__(self, jobs: Pipe) -> None:
        super().__init__("tests")
        self._jobs = jobs

    def dequeue(self) -> list[tuple[str, str]] | None:
        package = self._jobs.receive(0.01)
        return None if package is None else [("ack", package)]

    def fail(self, task_id: str) -> None:
        assert task_id == "ack"


@contextmanager
def queue() -> Iterator[tuple[Pipe, JobSource]]:
    with pipe() as jobs:
        yield jobs, JobSource(lambda: PipeBroker(jobs))


def packed(name: str) -> str:
    return str(SignedPackage.dumps({"name": name}))


def fork(work: Callable[..., object], *arguments: object) -> ForkProcess:
    # A connection that is open would be shared, and closed by the child.
    connections.close_all()
    process = FORK.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def do_jobs(source: JobSource, done: Pipe) -> None:
    for job in iter(source.get, STOP):
        done.send(f"{job['name']} {job['ack_id']}")


def next_of(source: JobSource) -> str:
    """What a worker gets."""
    with pipe() as told:
        fork(lambda: told.send(str(source.get()))).join()
        return told.receive(0) or ""


def give_jobs(jobs: Pipe) -> None:
    for number in range(JOBS):
        jobs.send(packed(str(number)))


def test_killed_workers_hold_up_nobody() -> None:
    """Killed while they take jobs as fast as they can, and while they wait for their turn."""
    chance = random.Random(20261125)
    with pipe() as done, queue() as (jobs, source):
        workers = [fork(do_jobs, source, done) for _ in range(WORKERS)]
        giver = fork(give_jobs, jobs)
        received: list[str] = []

        def receive(count: int) -> None:
            while count and (found := done.receive(5)):
                received.append(found)
                count -= 1

        for _ in range(KILLS):
            # Each kill comes at another moment of the work.
            receive(chance.randrange(10))
            place = chance.randrange(WORKERS)
            os.kill(workers[place].pid or 0, signal.SIGKILL)
            workers[place].join()
            workers[place] = fork(do_jobs, source, done)
        receive(JOBS)
        giver.join()
        jobs.send(packed("last"))
        receive(1)
        source.stop()
        for worker in workers:
            worker.join()

    assert received[-1] == "last ack"
    assert len(received) == len(set(received)), "no job is done twice"
    # What a worker was at when it was killed is lost, and nothing else.
    assert JOBS + 1 - len(received) <= KILLS


def test_a_stopped_worker_is_named_and_can_be_killed_for_the_others() -> None:
    """The kernel keeps a stopped process's turn for it."""
    with pipe() as done, queue() as (jobs, source):
        assert source.stuck_worker(0) is None
        asking = fork(do_jobs, source, done)
        wait_until(lambda: source.stuck_worker(0) == asking.pid, "the worker asks for jobs")
        waiting = fork(do_jobs, source, done)
        psutil.Process(asking.pid).suspend()
        wait_until(lambda: source.stuck_worker(1) == asking.pid, "it has asked for long")
        assert source.stuck_worker() is None, "others have more patience"
        jobs.send(packed("a job"))
        assert done.receive(1) is None

        asking.kill()
        assert done.receive(60) == "a job ack"
        wait_until(lambda: source.stuck_worker(0) == waiting.pid, "the other one asks now")
        source.stop()
        waiting.join()
        assert source.stuck_worker(0) is None


def test_what_is_no_job_is_dropped() -> None:
    with queue() as (jobs, source):
        jobs.send("unsigned")
        jobs.send(packed("a job"))
        assert next_of(source) == str({"name": "a job", "cluster": "memory", "ack_id": "ack"})


def test_a_broker_that_fails_is_asked_again() -> None:
    failures = [ConnectionError("gone"), ConnectionError("still gone")]
    with pipe() as jobs:

        def make_broker() -> Broker:
            if failures:
                raise failures.pop()
            return PipeBroker(jobs)

        jobs.send(packed("a job"))
        assert "a job" in next_of(JobSource(make_broker))


def test_no_job_is_taken_after_the_order_to_stop() -> None:
    # Packed once: the time is part of the signature.
    left = packed("left")
    with queue() as (jobs, source):
        jobs.send(left)
        source.stop()
        assert next_of(source) == STOP
        assert jobs.receive(0) == left


def test_workers_end_with_the_process_that_started_them() -> None:
    """One of them asks for jobs, the other one waits for its turn."""
    with queue() as (jobs, _):
        started = [RawValue("i", 0) for _ in range(2)]

        def wait_for_jobs(source: JobSource, place: int) -> None:
            started[place].value = os.getpid()
            source.get()

        def parent() -> None:
            source = JobSource(lambda: PipeBroker(jobs))
            for place in range(2):
                FORK.Process(target=wait_for_jobs, args=(source, place)).start()
            wait_until(lambda: all(each.value for each in started), "both wait")
            os.kill(os.getpid(), signal.SIGKILL)

        # Daemons, which the other processes here are, may have no children.
        killed = FORK.Process(target=parent)
        killed.start()
        killed.join()
        wait_until(lambda: all(is_gone(each.value) for each in started), "both have ended")


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_timer_that_a_worker_sets_runs_by_itself() -> None:
    timer = JobTimer()
    assert timer.value == -1

    def set_to(value: float) -> None:
        with timer.get_lock():
            timer.value = value
        if timer.value > 0:
            timer.value += 3

    def value_set(value: float) -> float:
        fork(set_to, value).join()
        return timer.value

    assert 600 < value_set(600) <= 603
    assert value_set(-1) == -1
    assert value_set(-2) == -2
    assert value_set(0) == 0
