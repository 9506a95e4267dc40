"""Archives that somebody changed: nothing of them is run, and without --trust nothing is taken."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_q.models import OrmQ, Schedule, Task

from sessions_app.backup.archive import signature_of
from sessions_app.backup.restore_checks import all_tables
from sessions_app.models import Turn
from sessions_app.turns.turn_claims import turns_ready
from tests.jobs import failed_job
from tests.recovery.archives import restore, tampered
from tests.recovery.contents import everything, wipe
from tests.world import CLIENT, World, message_from

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]

Files = dict[str, bytes]

SCHEDULE = (
    b"1\tevil\tos.system\t\\N\t('touch /tmp/PWNED',)\t\\N\tI\t1\t-1\t2026-01-01 00:00:00+00\t\\N\t"
    b"\\N\t\\N\t\\N\n"
)
COLUMNS = [field.column for field in Schedule._meta.local_concrete_fields]


def with_file(files: Files, table: str, content: bytes, columns: list[str]) -> None:
    """Put rows into a table, with a size, a number of rows and a checksum that fit them."""
    name = f"tables/{table}.copy"
    manifest = json.loads(files["manifest.json"])
    manifest["tables"][table] = {
        "name": name,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": content.count(b"\n"),
        "columns": columns,
    }
    files[name] = content
    files["manifest.json"] = json.dumps(manifest).encode()


def with_a_schedule(files: Files) -> None:
    with_file(files, "django_q_schedule", SCHEDULE, COLUMNS)


def with_a_superuser(files: Files) -> None:
    columns = json.loads(files["manifest.json"])["tables"]["auth_user"]["columns"]
    first = files["tables/auth_user.copy"].splitlines()[0]
    values = dict(zip(columns, first.decode().split("\t"), strict=True))
    values |= {"id": "9999", "username": "intruder", "is_superuser": "t"}
    row = "\t".join(values[column] for column in columns) + "\n"
    with_file(files, "auth_user", files["tables/auth_user.copy"] + row.encode(), columns)


def without_signature(files: Files) -> None:
    del files["manifest.hmac"]


def with_another_ones_signature(files: Files) -> None:
    files["manifest.hmac"] = signature_of(files["manifest.json"], "the key of somebody else")


def with_a_huge_signature(files: Files) -> None:
    files["manifest.hmac"] = b"0" * 10_000_000


def refused(path: Path, says: str, *options: str) -> None:
    before = everything()
    with pytest.raises(CommandError, match=says):
        call_command("restore", str(path), *options)
    assert everything() == before


def test_no_table_whose_rows_are_run_is_in_an_archive(archive: Path) -> None:
    """Neither are tables with pickles, which run code when they are read."""
    names = {table.name for table in all_tables()}
    assert not [name for name in names if name.startswith("django_q_")]
    pickled = {
        model._meta.db_table
        for model in apps.get_models()
        for field in model._meta.local_concrete_fields
        if "pickle" in type(field).__name__.lower()
    }
    assert pickled == {"django_q_task"}, "the queue itself has a pickle in a text"
    assert not pickled & names


def test_a_schedule_that_somebody_added_is_refused(archive: Path) -> None:
    """Review M2: with fitting checksums its function ran within a minute."""
    other = tampered(archive, with_a_schedule)
    refused(other, "was changed, or signed with another key")
    refused(other, "django_q_schedule.*run as code", "--trust")
    assert Schedule.objects.count() == 0


def test_a_schedule_is_refused_even_with_a_valid_signature(archive: Path, settings: Any) -> None:
    def signed(files: Files) -> None:
        with_a_schedule(files)
        files["manifest.hmac"] = signature_of(files["manifest.json"], settings.BACKUP_KEY)

    refused(tampered(archive, signed), "django_q_schedule.*run as code")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (with_a_superuser, "was changed, or signed with another key"),
        (without_signature, "is not signed"),
        (with_another_ones_signature, "was changed, or signed with another key"),
        (with_a_huge_signature, "was changed, or signed with another key"),
    ],
)
def test_an_archive_without_a_valid_signature_needs_trust(
    archive: Path, change: Callable[[Files], None], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tampered(archive, change)
    with pytest.raises(CommandError, match=says):
        call_command("backup", str(other), "--verify")
    refused(other, says, "--without-keys")
    call_command("backup", str(other), "--verify", "--trust")
    assert "WARNING" in capsys.readouterr().err
    call_command("restore", str(other), "--trust", "--without-keys")
    assert "somebody may have added their own" in re.sub(r"\s+", " ", capsys.readouterr().err)
    assert User.objects.filter(username="intruder").exists() is (change is with_a_superuser)


def test_another_installation_needs_the_key_of_the_first(archive: Path, settings: Any) -> None:
    key, settings.BACKUP_KEY = settings.BACKUP_KEY, "the key of this installation"
    refused(archive, "set BACKUP_KEY to the key of that one", "--without-keys")
    settings.BACKUP_KEY = key
    call_command("restore", str(archive), "--without-keys")


def test_the_key_is_in_no_archive(archive: Path, settings: Any) -> None:
    kept: dict[str, bytes] = {}
    tampered(archive, kept.update)
    assert not [name for name, file in kept.items() if settings.BACKUP_KEY.encode() in file]


def test_open_turns_are_answered_after_a_restore(world: World, tmp_path: Path) -> None:
    """Their jobs are not in the archive: the first sweep makes new ones."""
    call_command("install_schedules", verbosity=0)
    world.receive(message_from(CLIENT, "Where is order 17?"))
    OrmQ.objects.create(key="memory", payload="a job of the old server", lock=None)
    failed_job("a job that failed")
    archive = tmp_path / "open.zip"
    call_command("backup", str(archive), verbosity=0)
    wipe()
    for model in (OrmQ, Schedule, Task):
        model.objects.all().delete()
    restore(archive)
    found: dict[str, Any] = {
        model.__name__: model.objects.count() for model in (OrmQ, Schedule, Task)
    }
    assert found == {"OrmQ": 0, "Schedule": 0, "Task": 0}
    call_command("install_schedules", verbosity=0)
    assert Schedule.objects.filter(func="sessions_app.tasks.sweep_work").exists()
    assert list(turns_ready(timezone.now())) == [Turn.objects.get()]
    world.work()
    assert Turn.objects.get().state == "sent"
    assert [part.text for part in world.provider.sent] == ["answer to: Where is order 17?"]


def test_jobs_of_the_new_server_stay(archive: Path) -> None:
    """What `make run` put there, a restore leaves."""
    call_command("install_schedules", verbosity=0)
    planned = Schedule.objects.count()
    restore(archive)
    assert Schedule.objects.count() == planned > 0
    Schedule.objects.all().delete()
