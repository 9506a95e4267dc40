"""How a worker that waits for jobs is woken by the process that stores one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.db import transaction
from django.test import override_settings
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from memoryproject.foundation.process.brokers import DatabaseBroker, WakeUps, lane_wake_ups
from memoryproject.foundation.process.job_queue import STOP, JobSource
from memoryproject.foundation.process.lanes import BACKGROUND
from tests.processes.test_job_queue import fork, pipe
from tests.processes.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

LANE = "tests"
# The worker doesn't look for jobs by itself before the test has given up.
NO_LOOK_SECONDS = 600.0


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path) -> Iterator[Path]:
    with override_settings(DATA_DIR=tmp_path):
        yield tmp_path


def somebody_waits(path: Path) -> bool:
    """Whether a process has the pipe open; nothing is written to it."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return True
    return False


def test_each_wake_up_is_noticed_once(tmp_path: Path) -> None:
    path = tmp_path / "run" / "pipe"
    waiting, others = WakeUps(path), WakeUps(path)
    others.send()
    assert not path.exists(), "nobody has waited yet"
    assert not waiting.wait(0)
    for _ in range(3):
        others.send()
    assert waiting.wait(0)
    assert not waiting.wait(0), "one look finds the jobs of all"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_wake_ups_that_nobody_reads_hold_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "run" / "pipe"
    waiting, others = WakeUps(path), WakeUps(path)
    assert not waiting.wait(0)
    for _ in range(100_000):
        # More than a pipe holds.
        others.send()
    assert waiting.wait(0)
    assert not waiting.wait(0), "one look finds the jobs of all"


def test_a_job_wakes_once_it_is_committed() -> None:
    waiting, broker = lane_wake_ups(LANE), DatabaseBroker(LANE)
    assert not waiting.wait(0)
    with transaction.atomic():
        broker.enqueue("a job")
        assert not waiting.wait(0), "its worker would not find it yet"
    assert waiting.wait(0)
    with transaction.atomic():
        broker.enqueue("a job that is taken back")
        transaction.set_rollback(True)
    assert not waiting.wait(0)
    assert OrmQ.objects.filter(key=LANE).count() == 1


def test_nobody_is_woken_for_background_work() -> None:
    waiting, broker = lane_wake_ups(BACKGROUND), DatabaseBroker(BACKGROUND)
    assert not waiting.wait(0)
    broker.enqueue("a job")
    assert not waiting.wait(0)
    assert OrmQ.objects.filter(key=BACKGROUND).count() == 1


def test_a_worker_that_waits_takes_the_job_at_once(data_dir: Path) -> None:
    source = JobSource(lambda: DatabaseBroker(LANE))

    def work() -> None:
        Conf.POLL = NO_LOOK_SECONDS
        for job in iter(source.get, STOP):
            done.send(job["name"])

    with pipe() as done:
        worker = fork(work)
        wait_until(lambda: somebody_waits(data_dir / "run" / f"jobs-{LANE}.pipe"), "it waits")
        broker = DatabaseBroker(LANE)
        for name in ("first", "second"):
            broker.enqueue(SignedPackage.dumps({"name": name}))
            assert done.receive(60) == name
        source.stop()
        lane_wake_ups(LANE).send()
        worker.join()


def test_without_a_pipe_jobs_are_still_found(data_dir: Path) -> None:
    (data_dir / "run").write_text("a file in the place of the folder")
    broker = DatabaseBroker(LANE)
    poll, Conf.POLL = Conf.POLL, 0.0
    try:
        assert broker.dequeue() is None
        broker.enqueue("a job")
        assert [package for _, package in broker.dequeue() or []] == ["a job"]
    finally:
        Conf.POLL = poll
