"""The Django backend, in processes with settings of their own."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from tests.postgres.support import kill_all, line_of, run_python, send_line, start_python

pytestmark = pytest.mark.slow

SETTINGS = """
import sys
from pathlib import Path
from django.conf import settings
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
data_dir = Path(sys.argv[1])
server = EmbeddedPostgres(data_dir)
settings.configure(
    USE_TZ=True,
    DATABASES={"default": {
        "ENGINE": "memoryproject.foundation.embedded_postgres.backend",
        **server.connection_settings(),
        "OPTIONS": {"embedded_data_dir": str(data_dir)},
    }},
)
import django
django.setup()
from django.core.management import call_command
from django.db import OperationalError, connection
def ask(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()
"""


def run_django(program: str, data_dir: Path) -> list[str]:
    result = run_python(SETTINGS + program, data_dir)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_settings_start_nothing_and_the_first_query_does(data_dir: Path) -> None:
    program = """
print(data_dir.exists(), connection.vendor)
print(ask("SELECT '[1]'::vector, current_database()"), server.is_running())
connection.close()
print(ask("SELECT 2"))
"""
    lines = run_django(program, data_dir)
    assert lines == ["False postgresql", "('[1]', 'memory') True", "(2,)"]
    assert not EmbeddedPostgres(data_dir).is_running()


def test_a_server_that_was_killed_comes_back_by_itself(data_dir: Path) -> None:
    program = """
connection.cursor().execute("CREATE TABLE note AS SELECT 'kept' AS text")
for _ in range(2):
    print("ready", flush=True)
    sys.stdin.readline()
    connection.close()
    print(ask("SELECT text FROM note"), flush=True)
"""
    process = start_python(SETTINGS + program, data_dir)
    server = EmbeddedPostgres(data_dir)
    for _ in range(2):
        assert line_of(process) == "ready"
        kill_all(server)
        send_line(process)
        assert line_of(process) == "('kept',)"
    _, errors = process.communicate(timeout=60)
    assert errors == ""
    assert not server.is_running()


def test_a_test_database(data_dir: Path) -> None:
    program = """
name = connection.creation.create_test_db(verbosity=0)
print(name, ask("SELECT current_database()"))
connection.creation.destroy_test_db("memory", verbosity=0)
print(ask("SELECT count(*) FROM pg_database WHERE datname LIKE 'test%'"))
"""
    assert run_django(program, data_dir) == ["test_memory ('test_memory',)", "(0,)"]


def test_dbshell_uses_the_bundled_psql_and_starts_the_server(data_dir: Path) -> None:
    program = "call_command('dbshell', '--', '-At', '-c', 'SELECT current_user')"
    assert run_django(program, data_dir) == ["memory"]


def test_many_processes_connect_at_once(data_dir: Path) -> None:
    program = "print(ask('SELECT 1'), flush=True); sys.stdin.read()"
    users = [start_python(SETTINGS + program, data_dir) for _ in range(5)]
    assert [line_of(user) for user in users] == ["(1,)"] * 5
    assert [user.communicate(timeout=60)[1] for user in users] == [""] * 5
    assert not EmbeddedPostgres(data_dir).is_running()


def test_what_stops_the_server_reaches_django_as_a_database_failure(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o1777)
    program = """
try:
    ask("SELECT 1")
except OperationalError as error:
    print(error)
try:
    call_command("dbshell")
except OperationalError as error:
    print(error)
"""
    lines = run_django(program, data_dir)
    assert len(lines) == 2
    assert all("a folder that all users of this machine share" in line for line in lines)
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o1777


def test_other_failures_are_told_as_they_are(data_dir: Path) -> None:
    program = """
connection.settings_dict["NAME"] = "no_such_database"
try:
    ask("SELECT 1")
except OperationalError as error:
    print('"no_such_database" does not exist' in str(error), server.is_running())
"""
    assert run_django(program, data_dir) == ["True True"]


def test_a_database_without_its_data_dir_is_named(data_dir: Path) -> None:
    program = """
from django.core.exceptions import ImproperlyConfigured
connection.settings_dict["OPTIONS"] = {}
try:
    ask("SELECT 1")
except ImproperlyConfigured as error:
    print("OPTIONS['embedded_data_dir']" in str(error))
"""
    assert run_django(program, data_dir) == ["True"]
    assert not data_dir.exists()
