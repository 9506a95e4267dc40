"""Events are sealed once, in one order, and each has its line in the log file."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import tracemalloc
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django_q.models import OrmQ

from memoryproject.foundation.audit import tasks
from memoryproject.foundation.audit.audit_events import SYSTEM, Event, audit_record_many
from memoryproject.foundation.audit.chain import ChainError, audit_seal
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.schedules import PLANNED
from tests.audit.log import AuditLog, execute, kinds
from tests.processes.installation import copy_cluster, migrated_data_dir
from tests.programs import python


def test_an_untouched_log_verifies(log: AuditLog) -> None:
    log.record(25)
    assert log.seal(batch=7) == 25
    report = log.verify()
    assert report.verified, report.findings
    assert (report.events, report.first, report.last, report.lines) == (25, 1, 25, 25)
    assert log.seal() == 0


def test_nfr_sec_005_each_sealed_event_is_a_json_line_in_a_private_file(log: AuditLog) -> None:
    """NFR-SEC-005: JSON structured logs, with timestamp, user and content hash."""
    log.record(2)
    log.seal()
    first, second = (json.loads(line) for line in log.lines())
    event = AuditEvent.objects.get(seq=1)
    assert first == {
        "seq": 1,
        "id": event.pk,
        "at": event.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "action": "memory.remember",
        "actor_kind": "system",
        "actor": "",
        "chat": "",
        "object_type": "memory",
        "object_id": "memory.remember-0",
        "content_hash": "ab" * 32,
        "details": {"number": 0},
        "seal": event.seal,
    }
    assert second["seq"] == 2
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700


def test_what_is_rolled_back_was_not_done(log: AuditLog) -> None:
    with transaction.atomic():
        log.record(1)
        transaction.set_rollback(True)
    assert log.seal() == 0


def test_a_row_that_commits_late_with_a_lower_id_gets_a_later_number(log: AuditLog) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def late() -> None:
        with transaction.atomic():
            log.record(1, "late")
            begun.set()
            go_on.wait()
        connection.close()

    writer = threading.Thread(target=late)
    writer.start()
    begun.wait()
    log.record(1, "early")
    assert log.seal() == 1
    go_on.set()
    writer.join()
    assert log.seal() == 1
    order = AuditEvent.objects.order_by("seq").values_list("action", "seq")
    assert list(order) == [("early", 1), ("late", 2)]
    late_id, early_id = (AuditEvent.objects.get(action=name).pk for name in ("late", "early"))
    assert late_id < early_id
    assert log.verify().verified


def test_lines_of_a_killed_sealer_are_taken_over_and_not_written_twice(log: AuditLog) -> None:
    log.record(2)
    log.seal()
    head = execute("SELECT seq, seal, mac FROM audit_audithead")[0]
    log.record(3, "second")
    log.seal()
    written = log.lines()
    as_before_the_commit(head)
    # Meanwhile others commit, one of them with a lower id than those already written.
    execute(
        "INSERT INTO audit_auditevent (id, at, action, actor_kind, actor, chat, object_type,"
        " object_id, content_hash, details, seal) VALUES (-5, now(), 'late', 'system', '', '',"
        " '', '', '', '{}', '')"
    )
    assert log.seal() == 4
    assert log.lines()[:5] == written
    assert len(log.lines()) == 6
    report = log.verify()
    assert report.verified, report.findings
    assert report.repeated_lines == 0


def as_before_the_commit(head: tuple[int, str, str]) -> None:
    """The table as if the last seal had not been committed; the file stays."""
    execute("SET session_replication_role = replica")
    execute("UPDATE audit_auditevent SET seq = NULL, seal = '' WHERE seq > %s", head[0])
    execute("UPDATE audit_audithead SET seq = %s, seal = %s, mac = %s", *head)
    execute("SET session_replication_role = DEFAULT")


def test_a_line_that_a_crash_cut_off_is_written_again(log: AuditLog) -> None:
    log.record(2)
    log.seal()
    head = execute("SELECT seq, seal, mac FROM audit_audithead")[0]
    log.record(3, "second")
    log.seal()
    whole = log.path.read_bytes()
    as_before_the_commit(head)
    log.path.write_bytes(whole[:-100])
    assert log.seal() == 3
    assert log.path.read_bytes() == whole
    assert log.verify().verified


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_events_unsealed_and_loses_none(log: AuditLog) -> None:
    log.record(3)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        audit_seal(key=log.key, log_path=Path("/dev/full"))
    assert AuditEvent.objects.filter(seq__isnull=True).count() == 3
    assert log.seal() == 3
    assert log.verify().verified


def test_a_log_folder_of_no_use_is_told_and_loses_nothing(log: AuditLog, tmp_path: Path) -> None:
    log.record(2)
    (tmp_path / "logs").write_text("a file where the folder should be")
    report = log.verify()
    assert kinds(report) == ["log_unwritable"]
    assert report.waiting == 2
    os.remove(tmp_path / "logs")
    assert log.verify().events == 2


def test_another_key_seals_nothing(log: AuditLog) -> None:
    log.record(2)
    log.seal()
    log.record(1)
    with pytest.raises(ChainError, match="doesn't fit AUDIT_KEY"):
        audit_seal(key="another", log_path=log.path)
    assert log.seal() == 1
    assert log.verify().verified


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_auditevent SET action = 'other' WHERE seq = 1",
        "UPDATE audit_auditevent SET seq = NULL, seal = '' WHERE seq = 1",
        "UPDATE audit_auditevent SET action = 'other' WHERE seq IS NULL",
        "DELETE FROM audit_auditevent WHERE seq = 1",
        "DELETE FROM audit_auditevent WHERE seq IS NULL",
    ],
)
def test_the_database_refuses_accidents(log: AuditLog, statement: str) -> None:
    log.record(1)
    log.seal()
    log.record(1)
    with pytest.raises(IntegrityError, match="only ever added"):
        execute(statement)
    assert AuditEvent.objects.count() == 2


def peak_of_verifying(log: AuditLog) -> int:
    """The most memory, in bytes, that Python held at once."""
    tracemalloc.start()
    try:
        assert log.verify().verified
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_verifying_twice_as_much_takes_no_more_memory(log: AuditLog) -> None:
    """Once it is more than two batches of rows, of which one is read while one is verified."""
    events = [Event("memory.remember", SYSTEM, "memory", number) for number in range(5_000)]
    peaks = []
    for _ in range(2):
        audit_record_many(events=events)
        log.seal()
        peaks.append(peak_of_verifying(log))
    assert peaks[1] < peaks[0] * 1.2


# A seal job is asked for at a commit, once while one waits, and never in the caller's way.


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
        "    audit_record('a.b', SYSTEM)\n"
        "print(AuditEvent.objects.count())\n"
    )
    copy_cluster(migrated_data_dir(), tmp_path / "data")
    ended = python(
        *("manage.py", "shell", "-v0", "-c", script),
        folder=tmp_path,
        DATABASE_URL="",
        Q_BROKER="redis://127.0.0.1:1/0",
    )
    assert ended.stdout.strip() == "1"


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
