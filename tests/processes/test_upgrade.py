"""Databases of earlier states are brought up to date with all that they hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.installation import Installation

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
COUNT = """
import json
from django.db import connection
with connection.cursor() as cursor:
    counts = {}
    for table in connection.introspection.table_names(cursor):
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        counts[table] = cursor.fetchone()[0]
print(json.dumps(counts))
"""
# What a migration itself adds to, or makes anew; the third was an engine beside PostgreSQL.
OUR_OWN = ("django_", "auth_", "dashboard_", "memories_app_textchange")


@pytest.fixture(params=sorted(STATES.glob("*.dump")), ids=lambda path: path.stem)
def restored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """An installation with a database of that state."""
    old = Installation(tmp_path, ENABLE_MEMORY_SYSTEM="true")
    old.manage("shell", "-v", "0", "-c", RESTORE.format(dump=str(request.param)))
    yield old
    old.stop()


def counts(installation: Installation) -> dict[str, int]:
    printed = installation.manage("shell", "-v", "0", "-c", COUNT)
    found: dict[str, int] = json.loads(printed.splitlines()[-1])
    return {table: number for table, number in found.items() if not table.startswith(OUR_OWN)}


def test_all_that_it_holds_stays(restored: Installation) -> None:
    before = counts(restored)
    assert sum(before.values()) > 900
    restored.migrate()
    after = counts(restored)
    assert {table: after.get(table) for table in before} == before
    restored.manage("migrate", "--check")
    exported = restored.folder / "memories.jsonl"
    restored.manage("memories_export", "--out", str(exported))
    assert "gluten" in exported.read_text(encoding="utf-8")
    # It runs with the data.
    restored.start()
