"""Where the chain can't be gone on with, it is begun anew, and that is told."""

from __future__ import annotations

from dataclasses import replace

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.pruning import audit_begin_anew
from tests.audit.log import AuditLog, kinds, tamper


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
