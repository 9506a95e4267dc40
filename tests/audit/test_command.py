"""`manage.py audit_verify`, also after a restore."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memoryproject.foundation.audit.audit_events import audit_key, log_path
from tests.audit.log import AuditLog, tamper
from tests.recovery.contents import wipe
from tests.world import CLIENT, World


@pytest.fixture
def log(transactional_db: None) -> Iterator[AuditLog]:
    """The log that the settings name, with no file yet."""
    for path in log_path().parent.glob("memory_audit.log*"):
        path.unlink()
    yield AuditLog(log_path())
    for path in log_path().parent.glob("memory_audit.log*"):
        path.unlink()


def verify(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    call_command("audit_verify", "--json", *arguments)
    return json.loads(capsys.readouterr().out)


def test_a_whole_log(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    log.record(3)
    report = verify(capsys)
    assert (report["verified"], report["events"], report["waiting"]) == (True, 3, 0)
    call_command("audit_verify")
    assert "Verified: 3 sealed events (numbers 1 to 3)" in capsys.readouterr().out


def test_a_log_tampered_with(log: AuditLog, capsys: pytest.CaptureFixture[str]) -> None:
    log.record(3)
    log.seal()
    tamper("UPDATE audit_auditevent SET actor = 'x' WHERE seq = 2")
    with pytest.raises(CommandError, match="Event 2 .*it differs from its line in actor") as failed:
        call_command("audit_verify", "--json")
    assert failed.value.returncode == 1
    report = json.loads(capsys.readouterr().out)
    assert report["verified"] is False
    assert report["findings"][0]["kind"] == "row_changed"
    with pytest.raises(CommandError):
        call_command("audit_verify")
    assert "NOT verified: 1 thing is wrong." in capsys.readouterr().out


def test_the_key_is_neither_in_the_report_nor_in_the_log(
    log: AuditLog, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    log.record(1)
    call_command("audit_verify")
    texts = [*capsys.readouterr(), caplog.text, log.path.read_text()]
    assert not [text for text in texts if audit_key() in text]


def test_a_missing_log_file_is_told_and_made(
    log: AuditLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log.record(3)
    log.seal()
    before = log.path.read_bytes()
    with pytest.raises(CommandError, match="is there: it is never replaced"):
        call_command("audit_verify", "--write-log")
    log.path.unlink()
    with pytest.raises(CommandError, match="there is none, though events are sealed"):
        call_command("audit_verify")
    assert verify(capsys, "--write-log")["verified"]
    assert log.path.read_bytes() == before


def test_recovery_002_a_restored_log_verifies_with_its_key(
    log: AuditLog, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RECOVERY-002: the chain comes back, with what was not sealed yet, and goes on."""
    world.say(CLIENT, "Hello")
    log.seal()
    log.record(2)
    call_command("backup", str(tmp_path / "all.zip"), verbosity=0)
    wipe()
    # The new place has a log of its own by now.
    log.record(1, "setting.change")
    log.seal()
    call_command("restore", str(tmp_path / "all.zip"), "--without-keys")
    assert "is now" in capsys.readouterr().err
    report = verify(capsys)
    assert report["verified"], report
    assert report["events"] == 4, "a session, two memories and the restore itself"
    assert log_path().with_name("memory_audit.log.before-restore").exists()
    call_command("migrate", verbosity=0)


def test_a_backup_restored_over_a_newer_log_file_is_told(log: AuditLog) -> None:
    """Where the log file of the newer database is put back in its place."""
    log.record(5)
    log.seal()
    newer = log.path.read_bytes()
    tamper("DELETE FROM audit_auditevent WHERE seq > 3")
    log.path.write_bytes(newer)
    with pytest.raises(CommandError, match="Events 4 to 5: deleted from the table"):
        call_command("audit_verify")
