"""A seal job is asked for at a commit, once while one waits, and never in the caller's way."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import transaction
from django_q.models import OrmQ

from memoryproject.foundation.audit import tasks
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.schedules import PLANNED
from tests.audit.log import AuditLog, execute
from tests.programs import python


def queued() -> list[str]:
    return [job.func() for job in OrmQ.objects.order_by("id")]


def test_a_commit_asks_once_while_a_job_waits(log: AuditLog) -> None:
    with transaction.atomic():
        log.record(3)
        assert queued() == []
    assert queued() == ["memoryproject.foundation.audit.tasks.seal"]
    log.record(5)
    assert len(queued()) == 1
    # The job takes the mark away before it looks: what commits from then on asks again.
    log.seal()
    assert len(queued()) == 1, "sealing asks for nothing"
    log.record(1)
    assert len(queued()) == 2


def test_work_is_kept_when_the_queue_is_down(
    log: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    execute("ALTER TABLE django_q_ormq RENAME TO django_q_gone")
    try:
        with transaction.atomic():
            log.record(2)
    finally:
        execute("ALTER TABLE django_q_gone RENAME TO django_q_ormq")
    assert AuditEvent.objects.count() == 2
    assert "schedule_seal" in caplog.text
    assert log.seal() == 2
    log.record(1)
    assert len(queued()) == 1


@pytest.mark.processes
def test_a_redis_that_is_gone_fails_nobody(tmp_path: Path) -> None:
    """The whole way, in a process that has such a broker."""
    script = (
        "from django.db import transaction\n"
        "from memoryproject.foundation.audit.audit_events import SYSTEM, audit_record\n"
        "from memoryproject.foundation.audit.models import AuditEvent\n"
        "with transaction.atomic():\n"
        "    audit_record(action='a.b', actor=SYSTEM)\n"
        "print(AuditEvent.objects.count())\n"
    )
    broker = {"DATABASE_URL": "", "Q_BROKER": "redis://127.0.0.1:1/0"}
    outputs = [
        python("manage.py", *arguments, folder=tmp_path, **broker)
        for arguments in (["migrate", "-v0"], ["shell", "-v0", "-c", script])
    ]
    assert outputs[1].stdout.strip() == "1"


def test_the_clock_seals_and_prunes() -> None:
    planned = {each.task: each.minutes for each in PLANNED}
    assert planned["memoryproject.foundation.audit.tasks.seal"] == 1
    assert planned["memoryproject.foundation.audit.tasks.prune"] == 24 * 60


def test_a_task_that_is_stuck_says_so(log: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    log.record(1)
    AuditLog(log.path, key="another").seal()
    log.record(1)
    assert tasks.seal() == tasks.prune() == 0
    assert "CRITICAL" in caplog.text
    assert "doesn't fit AUDIT_KEY" in caplog.text
