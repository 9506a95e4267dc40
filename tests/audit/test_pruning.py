"""Events are kept for 90 days; what went before goes behind a signed checkpoint."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.utils import IntegrityError
from django.utils import timezone

from memoryproject.foundation.audit.chain import AUDIT_RETENTION_DAYS, ChainError, audit_begin_anew
from memoryproject.foundation.audit.models import AuditCheckpoint, AuditEvent
from tests.audit.log import AuditLog, execute, kinds, tamper

CHANGES = (
    "seq = seq + 1",
    "seal = repeat('0', 64)",
    "events = events - 1",
    "at = now()",
    "mac = ''",
)


def record_long_ago(log: AuditLog, count: int, days: int) -> None:
    """Events recorded and sealed so many days ago."""
    log.record(count, f"days.{days}")
    tamper(
        "UPDATE audit_auditevent SET at = at - make_interval(days => %s) WHERE action = %s",
        days,
        f"days.{days}",
    )
    log.seal()


@pytest.fixture
def old(log: AuditLog) -> AuditLog:
    """4 events of 100 days ago, 3 of 91, 2 of 89 and 1 of now."""
    for count, days in ((4, 100), (3, 91), (2, 89), (1, 0)):
        record_long_ago(log, count, days)
    return log


def test_nfr_sec_005_older_events_go_and_the_rest_verifies(old: AuditLog) -> None:
    """NFR-SEC-005: retention of 90 days."""
    assert AUDIT_RETENTION_DAYS == 90
    assert old.prune() == 7
    assert [seq for seq, _ in old.chain()] == [8, 9, 10]
    assert len(old.lines()) == 3
    assert stat.S_IMODE(old.path.stat().st_mode) == 0o600
    report = old.verify()
    assert report.verified, report.findings
    assert (report.events, report.first, report.pruned, report.checkpoints) == (3, 8, 7, 1)
    assert "7 older ones were pruned rightly" in report.describe()
    assert old.prune() == 0
    old.record(2)
    assert old.verify().events == 5


def test_pruning_goes_on_from_the_last_checkpoint(old: AuditLog) -> None:
    now = timezone.now()
    assert old.prune(now=now - timedelta(days=5)) == 4
    assert old.prune(now=now) == 3
    assert old.prune(now=now + timedelta(days=90, hours=1)) == 3
    report = old.verify()
    assert report.verified, report.findings
    assert (report.events, report.pruned, report.checkpoints) == (0, 10, 3)
    old.record(1)
    assert old.verify().last == 11


def test_what_is_not_sealed_is_not_pruned(log: AuditLog) -> None:
    log.record(1, "days.99")
    tamper("UPDATE audit_auditevent SET at = at - interval '99 days'")
    assert log.prune() == 0
    assert log.verify().events == 1
    assert log.prune() == 1


def test_a_clock_that_went_wrong_holds_nothing_up(log: AuditLog) -> None:
    record_long_ago(log, 2, 95)
    record_long_ago(log, 1, -400)
    record_long_ago(log, 2, 94)
    record_long_ago(log, 1, -1)
    assert log.prune() == 5
    assert log.verify().verified
    assert AuditEvent.objects.count() == 1


def test_what_was_tampered_with_is_not_pruned_away(old: AuditLog) -> None:
    for change in (
        "UPDATE audit_auditevent SET actor = 'x' WHERE seq = 3",
        "DELETE FROM audit_auditevent WHERE seq = 3",
    ):
        tamper(change)
        with pytest.raises(ChainError, match="that would hide it"):
            old.prune()
        assert AuditEvent.objects.filter(seq=7).exists()


def test_a_crash_between_table_and_file_leaves_old_lines_which_do_no_harm(old: AuditLog) -> None:
    lines = old.lines()
    old.prune()
    old.write(lines)
    assert old.verify().verified
    assert old.prune() == 0
    assert len(old.lines()) == 3


def test_a_row_that_comes_back_is_found(old: AuditLog) -> None:
    execute("CREATE TABLE kept AS SELECT * FROM audit_auditevent WHERE seq = 2")
    try:
        old.prune()
        tamper("INSERT INTO audit_auditevent SELECT * FROM kept")
    finally:
        execute("DROP TABLE kept")
    report = old.verify()
    assert kinds(report) == ["row_pruned"]
    assert report.findings[0].where == "Event 2"


class TestACheckpoint:
    @pytest.fixture
    def pruned(self, old: AuditLog) -> AuditLog:
        old.prune(now=timezone.now() - timedelta(days=5))
        old.prune()
        return old

    def test_is_guarded_against_accidents(self, pruned: AuditLog) -> None:
        for statement in (
            "DELETE FROM audit_auditcheckpoint",
            "UPDATE audit_auditcheckpoint SET seq = 1",
        ):
            with pytest.raises(IntegrityError, match="only ever added"):
                execute(statement)

    @pytest.mark.parametrize(
        "change",
        [
            "seq = seq + 1",
            "seal = repeat('0', 64)",
            "events = events - 1",
            "at = now()",
            "mac = ''",
        ],
    )
    @pytest.mark.parametrize("number", [1, 2])
    def test_changed(self, pruned: AuditLog, change: str, number: int) -> None:
        tamper(f"UPDATE audit_auditcheckpoint SET {change} WHERE number = %s", number)
        report = pruned.verify()
        assert "checkpoint_changed" in kinds(report)
        assert f"Checkpoint {number} " in report.findings[0].where
        if number == 2:
            with pytest.raises(ChainError):
                pruned.prune(now=timezone.now() + timedelta(days=90))

    @pytest.mark.parametrize("number", [1, 2])
    def test_removed(self, pruned: AuditLog, number: int) -> None:
        tamper("DELETE FROM audit_auditcheckpoint WHERE number = %s", number)
        report = pruned.verify()
        assert kinds(report) == ["checkpoint_removed" if number == 1 else "row_deleted"]

    def test_all_removed(self, pruned: AuditLog) -> None:
        tamper("DELETE FROM audit_auditcheckpoint")
        report = pruned.verify()
        assert kinds(report) == ["row_deleted"]
        assert report.findings[0].where == "Events 1 to 7"

    def test_forged_to_hide_what_was_deleted(self, old: AuditLog) -> None:
        tamper("DELETE FROM audit_auditevent WHERE seq <= 8")
        AuditCheckpoint.objects.create(
            number=1, seq=8, seal="0" * 64, events=8, at=timezone.now(), mac="0" * 64
        )
        assert "checkpoint_changed" in kinds(old.verify())


# Where the chain can't be gone on with, it is begun anew, and that is told.


def begin_anew(log: AuditLog) -> int:
    return audit_begin_anew(key=log.key, log_path=log.path)


def test_with_a_new_key(log: AuditLog) -> None:
    log.record(4)
    log.prune()
    log.seal()
    before = log.path.read_bytes()
    after = replace(log, key="a new key")
    assert kinds(after.verify()) == ["wrong_key"]
    assert begin_anew(after) == 5
    report = after.verify()
    assert report.verified, report.findings
    assert AuditEvent.objects.get(seq=5).action == "audit.begin_anew"
    assert after.path.with_name("memory_audit.log.before-new-chain").read_bytes() == before
    after.record(1)
    assert after.verify().last == 6
    assert kinds(log.verify()) == ["wrong_key"]


def test_where_the_mark_of_the_end_was_removed(log: AuditLog) -> None:
    log.record(2)
    log.seal()
    tamper("DELETE FROM audit_audithead")
    assert begin_anew(log) == 3
    assert log.verify().verified
