"""The restore drill: it proves that a backup can be restored, or says why it can't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.processes.installation import Installation, prepared

pytestmark = pytest.mark.processes

FACT = "TestCorp pays in 30 days"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("drill") / "server"
    folder.mkdir()
    with prepared(folder, GODFATHER_PHONE="15550199999@c.us") as made:
        made.manage("chat", "--message", f"/remember {FACT}")
        yield made


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_it_restores_and_leaves_nothing(installation: Installation, scratch: Path) -> None:
    before = installation.manage("memories_export")
    drill = json.loads(installation.manage("restore_drill", "--json", "--scratch", str(scratch)))
    assert drill["rows"] > 0
    assert drill["audit"].startswith("Verified: ")
    assert list(scratch.iterdir()) == []
    assert installation.manage("memories_export") == before


def test_it_takes_encrypted_ones(installation: Installation, scratch: Path, tmp_path: Path) -> None:
    identity, archive = tmp_path / "identity.txt", tmp_path / "monday.zip.age"
    recipient = installation.manage("backup", "--new-identity", str(identity)).strip()
    installation.manage("backup", "--recipient", recipient, str(archive))

    drill = ("restore_drill", "--scratch", str(scratch), str(archive))
    failed = installation.attempt(*drill)
    assert failed.returncode == 1
    assert "--identity" in failed.stderr
    shown = installation.manage(*drill, "--identity", str(identity))
    assert "The backup can be restored" in shown
    assert archive.exists()


def test_a_damaged_backup_fails(installation: Installation, scratch: Path, tmp_path: Path) -> None:
    archive = tmp_path / "damaged.zip"
    installation.manage("backup", str(archive))
    archive.write_bytes(archive.read_bytes()[:-500])

    failed = installation.attempt("restore_drill", "--scratch", str(scratch), str(archive))
    assert failed.returncode == 1
    assert "The drill failed. Verify failed" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert list(scratch.iterdir()) == []


def test_a_changed_audit_log_fails_the_drill(installation: Installation, scratch: Path) -> None:
    """What a backup faithfully preserves may still be wrong."""
    installation.manage("audit_verify")
    installation.manage(
        "shell",
        "-v0",
        "-c",
        "from django.db import connection\n"
        "cursor = connection.cursor()\n"
        "cursor.execute('ALTER TABLE audit_auditevent DISABLE TRIGGER USER')\n"
        "cursor.execute(\"UPDATE audit_auditevent SET action = 'other' WHERE seq = 1\")\n",
    )
    failed = installation.attempt("restore_drill", "--scratch", str(scratch))
    assert failed.returncode == 1
    assert "Check the audit chain failed" in failed.stderr


@pytest.mark.parametrize(
    "option",
    [["/nowhere/at-all.zip"], ["--scratch", "/nowhere/at-all"], ["--identity", "/nowhere/at-all"]],
)
def test_what_is_missing_is_named(option: list[str]) -> None:
    with pytest.raises(CommandError, match="There is no /nowhere/at-all"):
        call_command("restore_drill", *option)
