"""`backup` and `restore`: everything comes back, or nothing changes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import threading
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone
from hypothesis import given, settings as hypothesis_settings, strategies as st

from sessions_app.backup.archive import Manifest
from sessions_app.backup.archive_writer import ArchiveWriter
from sessions_app.backup.dependencies import archive_access
from sessions_app.backup.restore_checks import RestoreError, all_tables
from sessions_app.conversations.message_store import NewMessage
from sessions_app.models import Message, Turn
from tests.recovery.archives import Backup, restore, verify
from tests.recovery.contents import everything, wipe
from tests.sessions.invariants import check_all
from tests.threads import in_threads
from tests.world import CLIENT, World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]


def test_recovery_002_backup_wipe_restore_gives_the_same_rows(
    backup: Backup, archive: Path, world: World
) -> None:
    """RECOVERY-002: what was lost comes back from the backup, every row of every table."""
    before = backup.rows
    assert everything() != before, "all of it is gone"
    filled = [name for name, found in before.items() if found]
    assert {
        "sessions_app_chat",
        "sessions_app_message",
        "sessions_app_messageembedding",
        "sessions_app_summarizationmetadata",
        "sessions_app_turn",
        "memories_app_memory",
        "memories_app_memoryembedding",
        "auth_user",
    } <= set(filled)
    restore(archive)
    assert everything() == before
    check_all()
    # Life goes on: the tables' keys continue where they were, and what was said is known.
    session = world.session(CLIENT)
    assert world.say(CLIENT, "And now?") == ["answer to: And now?"]
    assert world.session(CLIENT).pk == session.pk
    assert Turn.objects.latest("id").replay.summary is not None


def test_the_commands_say_what_they_did(
    backup: Backup, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    call_command("backup", str(archive), "--verify", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == sum(len(found) for found in backup.rows.values())
    assert report["tables"] == len(all_tables())
    assert report["size"] == archive.stat().st_size
    call_command("restore", str(archive), "--without-keys")
    assert f"{report['rows']} rows of {report['tables']} tables" in capsys.readouterr().out


def test_the_archive_is_for_its_owner_alone_and_holds_the_keys(tmp_path: Path) -> None:
    archive = tmp_path / "new.zip"
    call_command("backup", str(archive), verbosity=0)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    keys = verify(archive, access=archive_access()).keys
    assert sorted(keys) == ["audit.key", "secret.key"]
    with zipfile.ZipFile(archive) as opened:
        kept = (settings.DATA_DIR / "audit.key").read_bytes()
        assert opened.read("keys/audit.key") == kept


def test_keys_come_back_where_they_are_wanted(archive: Path, tmp_path: Path) -> None:
    found: dict[str, bytes] = {}
    restore(archive, write_keys=found.update)
    assert found["secret.key"] == (settings.DATA_DIR / "secret.key").read_bytes()


def test_a_file_that_exists_is_never_replaced(archive: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(CommandError, match="exists already"):
        call_command("backup", str(archive))
    assert archive.read_bytes() == before
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="can't be written: No such file"):
        call_command("backup", str(tmp_path / "no" / "folder.zip"))


def test_a_database_with_data_is_never_overwritten(full: Path) -> None:
    before = everything()
    with pytest.raises(CommandError, match="holds data already, in .*sessions_app_chat"):
        call_command("restore", str(full), "--without-keys")
    assert everything() == before


def test_what_make_run_puts_into_a_fresh_database_gives_way(backup: Backup, archive: Path) -> None:
    call_command("migrate", verbosity=0)
    call_command("install_schedules", verbosity=0)
    call_command("ensure_admin", verbosity=0)
    restore(archive)
    assert everything() == backup.rows


def test_a_backup_is_of_one_moment_while_others_write(world: World, tmp_path: Path) -> None:
    """A writer adds messages all the while; counters and messages in the archive agree."""
    world.say(CLIENT, "begin")
    session_id = world.session(CLIENT).pk
    stop = threading.Event()

    def write() -> None:
        from tests.sessions.test_chat_memory import said  # noqa: PLC0415

        try:
            while not stop.is_set():
                world.rules.chat_memory.add_messages(
                    conversation_id=session_id, messages=[said("x" * 40), said("y" * 40)]
                )
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        paths = [tmp_path / f"{number}.zip" for number in range(5)]
        for path in paths:
            call_command("backup", str(path), verbosity=0)
    finally:
        stop.set()
        writer.join()
    for path in paths:
        wipe()
        restore(path)
        check_all()
        assert Message.objects.count() == Message.objects.latest("order_num").order_num


def test_two_restores_at_once_and_one_is_refused(backup: Backup, archive: Path) -> None:
    def run() -> str:
        try:
            restore(archive)
        except RestoreError as error:
            return str(error)
        return "restored"

    results = in_threads(run, 2)
    assert sorted(text[:8] for text in results)[1:] == ["restored"]
    refused = next(text for text in results if text != "restored")
    assert "Another restore" in refused or "holds data already" in refused
    assert everything() == backup.rows


@pytest.mark.parametrize("messages", [1, 40], ids=["after a table", "amid a table"])
def test_a_full_disk_leaves_no_file(messages: int, world: World, tmp_path: Path) -> None:
    world.say(CLIENT, "hello")
    lines = [
        NewMessage(role="user", content=f"line {number}", timestamp=timezone.now())
        for number in range(messages)
    ]
    world.rules.chat_memory.add_messages(conversation_id=world.session(CLIENT).pk, messages=lines)
    for message in Message.objects.all():
        Message.objects.filter(pk=message.pk).update(content=os.urandom(60_000).hex())
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount")
    try:
        with pytest.raises(CommandError, match="No space left on device. Nothing is left"):
            call_command("backup", str(folder / "all.zip"))
        assert list(folder.iterdir()) == []
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@hypothesis_settings(max_examples=30, deadline=None)
@given(files=st.lists(st.lists(st.binary(max_size=200), max_size=5), max_size=4))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]
) -> None:
    path = tmp_path_factory.mktemp("archive") / "a.zip"
    with ArchiveWriter(path, access=archive_access()) as writer:
        tables = {
            f"t{place}": writer.add(f"tables/t{place}.copy", blocks, columns=["c"])
            for place, blocks in enumerate(files)
        }
        writer.publish(Manifest("1", "2026", "18", ["a.1"], tables, {"s": (5, True)}))
    found = verify(path, access=archive_access())
    assert found.tables == tables
    assert found.sequences == {"s": (5, True)}
    assert [table.rows for table in found.tables.values()] == [
        b"".join(blocks).count(b"\n") for blocks in files
    ]
