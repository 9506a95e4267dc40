"""How a worker stores the results of its jobs in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.signals import post_execute

from memoryproject.foundation.process.brokers import DatabaseBroker
from memoryproject.foundation.process.job_queue import JobResults

# The package closes old connections.
pytestmark = pytest.mark.django_db(transaction=True)

LANE = "tests"
ID = "0123456789abcdef0123456789abcdef"


def done(**changes: Any) -> dict[str, Any]:
    """A job as a worker hands it over, which is still in the queue."""
    queued = OrmQ.objects.create(key=LANE, payload="", lock=timezone.now())
    now = timezone.now()
    return {
        "id": ID,
        "name": "answer somebody",
        "func": "sessions_app.tasks.answer_chat",
        "args": ("a chat",),
        "kwargs": {"more": 1},
        "cluster": LANE,
        "ack_failure": True,
        "ack_id": queued.pk,
        "started": now - timedelta(seconds=2),
        "stopped": now,
        "result": {"answered": 3},
        "success": True,
        **changes,
    }


def put(job: dict[str, Any]) -> None:
    JobResults(DatabaseBroker(LANE)).put(job)


def test_a_result_is_stored_and_its_job_removed_in_one_statement() -> None:
    job, executed = done(), []

    def note(sender: object, task: dict[str, Any], **_: object) -> None:
        executed.append(task["id"])

    post_execute.connect(note)
    with CaptureQueriesContext(connection) as queries:
        put(job)
    post_execute.disconnect(note)
    assert len(queries) == 1
    assert executed == [ID]
    assert not OrmQ.objects.exists()
    stored = Task.objects.get()
    names = ("id", "name", "func", "args", "kwargs", "cluster", "started", "stopped", "result")
    assert {name: getattr(stored, name) for name in names} == {name: job[name] for name in names}
    assert (stored.success, stored.attempt_count, stored.hook, stored.group) == (
        True,
        1,
        None,
        None,
    )


def test_a_job_that_failed_before_has_succeeded_now() -> None:
    put(done(success=False, result="it failed"))
    assert Task.objects.get().result == "it failed"
    job = done()
    put(job)
    stored = Task.objects.get()
    assert (stored.success, stored.result, stored.stopped) == (True, job["result"], job["stopped"])
    assert stored.attempt_count == 2
    assert not OrmQ.objects.exists()


def test_a_job_that_was_given_out_twice_keeps_its_first_result() -> None:
    put(done(result="first"))
    put(done(result="second"))
    stored = Task.objects.get()
    assert (stored.result, stored.attempt_count) == ("first", 1)
    assert not OrmQ.objects.exists()


def test_what_follows_on_a_job_is_left_to_the_package() -> None:
    put(
        done(chain=[("sessions_app.tasks.sweep_work", (), {})], group=None, cached=None, sync=False)
    )
    assert Task.objects.get().success
    (next_job,) = OrmQ.objects.all()
    assert next_job.func() == "sessions_app.tasks.sweep_work"
