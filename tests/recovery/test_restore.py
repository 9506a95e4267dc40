"""Restores between servers that differ, and restores that must not begin or not end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.utils import IntegrityError
from hypothesis import given, settings, strategies as st

from memories_app.models import Memory
from memoryproject import __version__
from sessions_app.backup.archive import ArchiveReader, Member
from sessions_app.backup.archive_writer import ArchiveWriter
from sessions_app.backup.dependencies import archive_access
from sessions_app.backup.restore_checks import RestoreError
from sessions_app.models import Broadcast
from tests.processes.waiting import wait_until
from tests.recovery.archives import restore, tampered
from tests.recovery.contents import everything, wipe
from tests.world import CLIENT, World

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_after_migrate")]

TEXTS = st.lists(
    st.text(alphabet=st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    max_size=20,
)


@pytest.fixture
def archive(world: World, tmp_path: Path) -> Path:
    """The backup of one short conversation, which is still there."""
    world.say(CLIENT, "Where is order 17?")
    return backed_up(tmp_path / "all.zip")


def backed_up(path: Path) -> Path:
    call_command("backup", str(path), verbosity=0)
    return path


def fresh() -> None:
    """As `migrate` leaves a new database."""
    wipe()
    call_command("migrate", verbosity=0)


def execute(statement: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall()) if cursor.description else []


def opened(path: Path) -> ArchiveReader:
    return ArchiveReader(path, access=archive_access())


def forged(path: Path, table: str, change: Callable[[bytes], bytes]) -> Path:
    """The archive with other rows in one table and checksums that fit them."""
    other = path.with_name("forged.zip")
    with opened(path) as old, ArchiveWriter(other, access=archive_access()) as new:
        members = {}
        for name, member in old.manifest.tables.items():
            rows = b"".join(old.blocks(member))
            changed = change(rows) if name == table else rows
            members[name] = new.add(member.name, [changed], columns=member.columns)
        keys = {name: new.add(key.name, old.blocks(key)) for name, key in old.manifest.keys.items()}
        new.publish(replace(old.manifest, tables=members, keys=keys))
    return other


def not_of_backups(archive: ArchiveReader) -> dict[str, Member]:
    """All tables but the audit log, in which a later backup finds the earlier one told."""
    tables = archive.manifest.tables
    return {name: member for name, member in tables.items() if name != "audit_auditevent"}


def of_another_version(files: dict[str, bytes]) -> None:
    for old, new in (
        (b'"sessions_app.0001_initial"', b'"sessions_app.0001_initial", "sessions_app.9999_later"'),
        (f'"{__version__}"'.encode(), b'"9.8.7"'),
    ):
        files["manifest.json"] = files["manifest.json"].replace(old, new)


@pytest.mark.parametrize(
    "taste",
    [
        "SET DateStyle = 'SQL, DMY'",
        "SET DateStyle = 'German'",
        "SET TimeZone = 'Asia/Jerusalem'",
        "SET bytea_output = 'escape'",
        "SET extra_float_digits = -15",
        "SET statement_timeout = '50ms'",
    ],
)
def test_a_servers_taste_is_not_archived(taste: str, archive: Path, tmp_path: Path) -> None:
    before = everything()
    execute(taste)
    try:
        other = backed_up(tmp_path / "taste.zip")
    finally:
        connection.close()
    with opened(archive) as plain, opened(other) as tasted:
        assert not_of_backups(plain) == not_of_backups(tasted)
    wipe()
    execute(taste)
    try:
        restore(other)
    finally:
        connection.close()
    assert everything() == before


def test_what_others_keep_in_the_schema_is_not_in_the_archive(archive: Path) -> None:
    before = everything()
    execute("CREATE TABLE somebody_elses (id serial PRIMARY KEY)")
    try:
        other = backed_up(archive.with_name("other.zip"))
    finally:
        execute("DROP TABLE somebody_elses")
    wipe()
    restore(other)
    assert everything() == before


@settings(max_examples=8, deadline=None)
@given(texts=TEXTS)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    wipe()
    Memory.objects.bulk_create(
        Memory(
            content=text,
            metadata={text: [text, {"deep": text}]},
            tags=[text[:64], ""],
            terms=[text, text],
            visibility="public",
            fact_key=f"text {place}",
        )
        for place, text in enumerate(texts)
    )
    before = everything()
    path = backed_up(tmp_path_factory.mktemp("texts") / "all.zip")
    wipe()
    restore(path)
    assert everything() == before
    assert sorted(Memory.objects.values_list("content", flat=True)) == sorted(texts)


def test_a_full_database_is_refused_before_it_is_migrated(archive: Path) -> None:
    before = everything()
    applied = execute("SELECT app, name FROM django_migrations ORDER BY id")
    call_command("migrate", "django_q", "0018", fake=True, verbosity=0)
    older = execute("SELECT app, name FROM django_migrations ORDER BY id")
    try:
        with pytest.raises(CommandError, match="holds data already, in .*sessions_app_chat"):
            call_command("restore", str(archive))
        assert execute("SELECT app, name FROM django_migrations ORDER BY id") == older != applied
    finally:
        # What depends on it was taken back, too.
        call_command("migrate", fake=True, verbosity=0)
    before.pop("django_migrations")
    assert {name: rows for name, rows in everything().items() if name in before} == before


def test_a_backup_of_a_newer_version_is_refused_before_tables_are_made(archive: Path) -> None:
    other = tampered(archive, of_another_version)
    wipe()
    made: list[Any] = []
    with pytest.raises(RestoreError) as refused:
        restore(other, trust=True, make_tables=made.append)
    assert made == []
    for named in ("made by version 9.8.7", f"This is version {__version__}", "9999_later"):
        assert named in str(refused.value)


def test_rows_that_postgresql_refuses_are_told_and_change_nothing(archive: Path) -> None:
    other = forged(
        archive, "sessions_app_message", lambda rows: rows.replace(b"\tuser\t", b"\tnobody\t")
    )
    fresh()
    before = everything()
    with pytest.raises(CommandError, match="Nothing was restored: .*message_role_known"):
        call_command("restore", str(other))
    assert everything() == before


def test_keys_stay_where_the_rows_do_not_fit_together(archive: Path) -> None:
    """Foreign keys are checked at the end of a transaction, but before the keys change."""
    other = forged(archive, "sessions_app_chat", lambda _rows: b"")
    wipe()
    before = everything()
    found: list[Any] = []
    with pytest.raises(IntegrityError):
        restore(other, write_keys=found.append)
    assert found == []
    assert everything() == before


def test_a_lost_connection_is_told_and_changes_nothing(archive: Path) -> None:
    fresh()
    before = everything()
    told: list[str] = []

    def run() -> None:
        try:
            call_command("restore", str(archive), "--without-keys")
        except CommandError as error:
            told.append(str(error))
        finally:
            connection.close()

    restoring = threading.Thread(target=run)
    waiting = (
        "SELECT pg_terminate_backend(pid) FROM pg_locks"
        " WHERE NOT granted AND relation = 'sessions_app_turn'::regclass"
    )
    with transaction.atomic():
        # As a writer that isn't done: the restore waits for it.
        execute("LOCK TABLE sessions_app_turn IN ROW EXCLUSIVE MODE")
        restoring.start()
        wait_until(lambda: execute(waiting), "the restore waits")
    restoring.join()
    assert told[0].startswith("Nothing was restored: ")
    assert everything() == before
    restore(archive)


def test_open_connections_are_told(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wipe()
    stay = threading.Event()
    up = threading.Event()

    def idle() -> None:
        execute("SELECT 1")
        up.set()
        stay.wait()
        connection.close()

    other = threading.Thread(target=idle)
    other.start()
    try:
        up.wait()
        call_command("restore", str(archive), "--without-keys")
    finally:
        stay.set()
        other.join()
    assert "other connections to this database are open" in capsys.readouterr().err


def test_a_broadcast_that_ran_is_paused(world: World, tmp_path: Path) -> None:
    """Whom it reached since the backup isn't known: nobody gets it twice by itself."""
    for state in ("running", "done"):
        Broadcast.objects.create(template="sale", language="en", state=state, user_name="dana")
    path = backed_up(tmp_path / "all.zip")
    wipe()
    restore(path)
    assert set(Broadcast.objects.values_list("state", flat=True)) == {"paused", "done"}
