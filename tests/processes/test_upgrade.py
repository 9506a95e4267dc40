"""Databases of earlier states are brought up to date with all that they hold."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from tests.processes.database import Database
from tests.processes.installation import Installation
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

STATES = Path(__file__).parent / "upgrades"
RESTORE = """
import os, subprocess
from django.db import connection
from memoryproject.foundation.embedded_postgres.places import postgres_program
connection.ensure_connection()
psql, environment = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
*connects, database = psql[1:]
restore = [str(postgres_program("pg_restore")), *connects, "--dbname", database, "--no-owner"]
subprocess.run([*restore, {dump!r}], env={{**os.environ, **environment}}, check=True)
"""
TABLES = "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()"
COLUMNS = """
SELECT table_name AS table, column_name AS name,
    is_nullable = 'YES' OR column_default IS NOT NULL OR is_identity = 'YES' AS is_optional
FROM information_schema.columns WHERE table_schema = current_schema()
"""
WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype <> 'advisory'"
# What a migration itself adds to, or makes anew; the last was an engine beside PostgreSQL.
OUR_OWN = ("django_", "auth_", "dashboard_", "shared_cache", "memories_app_textchange")
# One for a whole installation, or what is only written in rare cases.
FEW = {
    *("auth_group", "memories_app_embeddingmodel", "sessions_app_assistantprofile"),
    *("sessions_app_summarywork", "audit_auditcheckpoint", "audit_audithead", "audit_auditperson"),
    *("audit_auditsealjob", "audit_auditsetting", "audit_auditverification"),
}
BACKUP_KEY = "a-key-of-the-tests-of-upgrades-and-nothing-else"
REMEMBERED = "TestCorp pays within 30 days of the invoice"


@pytest.fixture(params=sorted(STATES.glob("*.dump")), ids=lambda path: path.stem)
def restored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation with a database of that state, and with its keys."""
    old = installation(tmp_path)
    old.data_dir.mkdir(mode=0o700)
    with zipfile.ZipFile(request.param.with_suffix(".zip")) as archive:
        (old.data_dir / "audit.key").write_bytes(archive.read("keys/audit.key"))
    server = EmbeddedPostgres(old.data_dir)
    try:
        server.ensure_running()
        old.manage("shell", "-v", "0", "-c", RESTORE.format(dump=str(request.param)))
        old.manage("audit_verify", "--write-log")
        yield old
    finally:
        server.release()
        old.stop()


def installation(folder: Path) -> Installation:
    return Installation(
        folder, ENABLE_MEMORY_SYSTEM="true", BACKUP_KEY=BACKUP_KEY, ADMIN_PASSWORD="of-the-tests"
    )


def counts(database: Database) -> dict[str, int]:
    tables = [row["name"] for row in database.rows(TABLES)]
    return {
        table: database.rows(f'SELECT count(*) AS rows FROM "{table}"')[0]["rows"]
        for table in tables
        if not table.startswith(OUR_OWN)
    }


def columns(database: Database) -> dict[tuple[str, str], bool]:
    """Each column by its table, with whether a row can be stored without it."""
    return {(row["table"], row["name"]): row["is_optional"] for row in database.rows(COLUMNS)}


KINDS = """
SELECT relkind::text FROM pg_class
WHERE relname IN ('sessions_app_inbounddelivery', 'sessions_app_turnreplay')
"""
# As the programs of the version before write, which need the constraints.
OLDER_STATEMENTS = (
    """
INSERT INTO sessions_app_inbounddelivery
    (provider, delivery_key, event, subject_id, outcome, attempts, received_at)
SELECT provider, delivery_key, event, subject_id, outcome, attempts, received_at
FROM sessions_app_inbounddelivery LIMIT 5 ON CONFLICT (provider, delivery_key) DO NOTHING
""",
    """
INSERT INTO sessions_app_turnreplay (turn_id, prompt, recalled, shown, left_out, model, timings)
SELECT turn_id, prompt, recalled, shown, left_out, model, timings
FROM sessions_app_turnreplay LIMIT 5 ON CONFLICT (turn_id) DO UPDATE SET model = EXCLUDED.model
""",
)


def test_all_that_it_holds_stays_and_is_used(restored: Installation) -> None:
    database = Database(restored.data_dir)
    before, known = counts(database), columns(database)
    assert [table for table, rows in before.items() if rows < 200 and table not in FEW] == []

    told = restored.manage("prepare")
    assert "Index messages anew" in told
    after = counts(database)
    assert {table: after.get(table) for table in before} == before
    restored.manage("migrate", "--check")
    assert_older_code_can_write(known, columns(database))
    assert_in_use(restored)
    assert_partitioned_once_older_programs_have_ended(restored, database)
    restored.start()


def assert_partitioned_once_older_programs_have_ended(
    upgraded: Installation, database: Database
) -> None:
    tend = ("shell", "-c", "from sessions_app.tasks import tend_partitions; tend_partitions()")
    upgraded.manage(*tend)
    before = counts(database)
    with database.connect() as connection:
        for statement in OLDER_STATEMENTS:
            connection.execute(statement)
    assert {row["relkind"] for row in database.rows(KINDS)} == {"r"}
    with database.connect() as connection:
        connection.execute("UPDATE django_migrations SET applied = applied - interval '2 days'")
    upgraded.manage(*tend)
    assert {row["relkind"] for row in database.rows(KINDS)} == {"p"}
    after = counts(database)
    assert {table: after.get(table) for table in before} == before


def assert_older_code_can_write(
    known: dict[tuple[str, str], bool], now: dict[tuple[str, str], bool]
) -> None:
    """Workers of that state find all of their columns, and need not fill others."""
    tables = {table for table, _ in known}
    assert {each for each in known.keys() - now.keys() if not each[0].startswith(OUR_OWN)} == set()
    added = [each for each in now.keys() - known.keys() if each[0] in tables]
    assert added
    assert [each for each in added if not now[each]] == []


def assert_in_use(upgraded: Installation) -> None:
    """What it remembers is found, it can be erased, and the audit log is the old one, longer."""
    asked = ("chat", "--message", "What do you know about TestCorp?")
    assert REMEMBERED in upgraded.manage(*asked)
    assert "Forgotten" in upgraded.manage("chat", "--message", "/forget TestCorp pays")
    assert REMEMBERED not in upgraded.manage(*asked)
    found = re.search(r"Verified: (\d+) sealed", upgraded.manage("audit_verify"))
    assert found
    assert int(found[1]) > 321


# Where the migrations stop: among the portions of sessions_app.0009, and within the transaction of
# memories_app.0002, which comes later.
EARLY = "SELECT FROM sessions_app_message WHERE content <> '' FOR UPDATE"
LATE = "LOCK TABLE memories_app_memory IN ACCESS SHARE MODE"


def test_an_interrupted_upgrade_is_begun_again(restored: Installation) -> None:
    """Told to stop in the middle, and killed further on."""
    database = Database(restored.data_dir)
    before = counts(database)
    with database.connect() as late:
        late.execute(LATE)
        with database.connect() as early:
            early.execute(EARLY)
            first = restored.start_command("migrate")
            wait_until_it_says(restored, database, 1)
            first.terminate()
            first.wait(60)
            second = begin_beside(restored, 1)
        wait_until_it_says(restored, database, 2)
        second.kill()
        second.wait(60)
        third = begin_beside(restored, 2)
    third.wait(60)
    restored.manage("migrate", "--check")
    after = counts(database)
    assert {table: after.get(table) for table in before} == before
    restored.manage("prepare")
    assert_in_use(restored)


def wait_until_it_says(restored: Installation, database: Database, times: int) -> None:
    wait_until(lambda: database.rows(WAITING), "the migration waits for the lock")
    said = "at work for 10 seconds"
    wait_until(lambda: restored.output().count(said) >= times, "it says so")


def begin_beside(restored: Installation, times: int) -> psutil.Process:
    """The database still works on the statement of the one before: nobody begins beside it."""
    started = restored.start_command("migrate")
    wait_until(lambda: restored.output().count("waiting for it") >= times, "it waits")
    return started


def test_its_backup_is_restored_into_this_version(tmp_path: Path) -> None:
    """With tables or without, it holds the same."""
    found = []
    for has_tables in (True, False):
        folder = tmp_path / f"tables-{has_tables}"
        folder.mkdir()
        new = installation(folder)
        server = EmbeddedPostgres(new.data_dir)
        try:
            if has_tables:
                new.prepare()
            restored = json.loads(new.manage("restore", "--json", str(STATES / "e3b8a57.zip")))
            assert restored["rows"] > 16_000
            # Later commands read the keys that were restored.
            new.stop_processes()
            server.ensure_running()
            new.manage("migrate", "--check")
            found.append(counts(Database(new.data_dir)))
            if not has_tables:
                assert_in_use(new)
                new.manage("prepare")
        finally:
            server.release()
            new.stop()
    assert found[0] == found[1]
