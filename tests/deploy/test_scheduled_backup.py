"""The scheduled backup: a new file each time, and only its own old ones are removed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from deploy.scheduled_backup import FORM, backup_command, expired
from sessions_app.models import Chat, MediaFile, Turn
from tests.docs.sources import PROJECT

NOW = datetime(2026, 11, 23, 2, 30, tzinfo=timezone.utc)


def test_only_old_backups_of_its_own_are_removed(tmp_path: Path) -> None:
    old = (NOW - timedelta(days=31)).strftime(FORM)
    for name in (old, (NOW - timedelta(days=29)).strftime(FORM), "monday.zip", f"x{old}"):
        (tmp_path / name).touch()
    found = expired(tmp_path, now=NOW, kept=timedelta(days=30))
    assert [path.name for path in found] == [old]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("media", [True, False])
def test_the_files_of_messages_are_in_it_by_choice(
    tmp_path: Path, settings: Any, media: bool
) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / "media").mkdir()
    row = MediaFile.objects.create(
        turn=Turn.objects.create(
            chat=Chat.objects.create(whatsapp_chat="15550100123@c.us"), asked_at=NOW
        ),
        state="stored",
    )
    (tmp_path / "media" / str(row.pk)).write_bytes(b"pixels")
    _python, _manage, *words = backup_command(tmp_path / "all.zip", media=media)
    call_command(*words, verbosity=0)
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert (f"media/{row.pk}" in archive.namelist()) == media


@pytest.mark.processes
def test_a_failed_backup_removes_nothing_and_says_why(tmp_path: Path) -> None:
    old = tmp_path / "memory-20200101T000000Z.zip"
    old.touch()
    failed = subprocess.run(
        [sys.executable, str(PROJECT / "deploy" / "scheduled_backup.py"), str(tmp_path)],
        env={**os.environ, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert failed.stderr.strip()
    assert old.exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    failed = subprocess.run(
        [sys.executable, str(PROJECT / "deploy/scheduled_backup.py"), str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert "create it first" in failed.stderr
