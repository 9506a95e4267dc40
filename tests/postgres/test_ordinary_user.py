"""The server as an ordinary user has it, also where the tests run as root."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.cluster import ServerAccount, server_account
from memoryproject.foundation.embedded_postgres.places import postgres_program
from tests.postgres.conftest import end_server
from tests.postgres.support import run_python

pytestmark = pytest.mark.slow

PROGRAM = """
import os, stat, sys
from pathlib import Path
import psycopg
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import postmaster_of
server = EmbeddedPostgres(Path(sys.argv[1]))
for _ in range(2):
    server.ensure_running()
    main = postmaster_of(server.places)
    print(os.geteuid() != 0, main.uids().real == os.geteuid(), os.getsid(main.pid) == os.getsid(0))
    settings = {"user": "memory", "password": server.password, "dbname": "memory"}
    with psycopg.connect(host=server.host, port=server.port, **settings) as connection:
        print(connection.execute("SELECT '[1]'::vector").fetchone())
    server.release()
print(server.is_running())
print(oct(os.stat(sys.argv[1]).st_mode), {os.stat(p).st_uid for p in Path(sys.argv[1]).iterdir()}
      == {os.geteuid()})
"""


SURVIVAL_PROGRAM = """
import os, signal, sys
from pathlib import Path
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import is_alive, postmaster_of
server = EmbeddedPostgres(Path(sys.argv[1]))
server.ensure_running()
main = postmaster_of(server.places)
os.kill(main.pid, signal.SIGKILL)
while is_alive(main):
    pass
server.ensure_running()
print(postmaster_of(server.places).pid != main.pid, server.is_running())
server.release()
print(server.is_running())
"""


@pytest.fixture
def account() -> ServerAccount:
    """An ordinary user who can reach this Python: nobody, helped past closed folders, for root."""
    try:
        return server_account()
    except EmbeddedPostgresError as error:
        pytest.skip(str(error))


@pytest.fixture
def own_data_dir(account: ServerAccount) -> Iterator[Path]:
    parent = Path(tempfile.mkdtemp(prefix="pg-"))
    if parent.stat().st_uid != account.uid:
        shutil.chown(parent, account.uid)
    yield parent / "data"
    end_server(parent / "data")
    shutil.rmtree(parent)


def test_an_ordinary_user_runs_it_as_himself(account: ServerAccount, own_data_dir: Path) -> None:
    result = run_python(PROGRAM, own_data_dir, account=account)
    assert result.stderr == ""
    once = ["True True False", "('[1]',)"]
    assert result.stdout.splitlines() == [*once, *once, "False", "0o40700 True"]


@pytest.mark.usefixtures("as_root")
def test_root_in_a_container_needs_no_more_than_such_root_has(data_dir: Path) -> None:
    few = "-all,+chown,+dac_override,+fowner,+kill,+setgid,+setuid,+setpcap"
    container_root = ServerAccount(0, 0, "root", ("setpriv", f"--bounding-set={few}", "--"))
    result = run_python(SURVIVAL_PROGRAM, data_dir, account=container_root)
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["True True", "False"]


@pytest.mark.usefixtures("as_root")
def test_root_may_have_the_programs_in_a_folder_closed_to_others(data_dir: Path) -> None:
    package = postgres_program("postgres").parents[2]
    closed = data_dir.parent / "closed"
    closed.mkdir(mode=0o700)
    for folder in package.parent.glob(f"{package.name}*"):
        shutil.copytree(folder, closed / folder.name)
    program = f"import sys; sys.path.insert(0, {str(closed)!r})\n{SURVIVAL_PROGRAM}"
    result = run_python(program, data_dir)
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["True True", "False"]
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@pytest.mark.usefixtures("as_root")
def test_root_leaves_a_users_database_alone(account: ServerAccount, own_data_dir: Path) -> None:
    other = ServerAccount(uid=1, gid=1, name="daemon", prefix=_as_daemon(account))
    shutil.chown(own_data_dir.parent, other.uid)
    result = run_python(PROGRAM, own_data_dir, account=other)
    assert result.stderr == ""
    before = {path: path.stat().st_uid for path in own_data_dir.rglob("*")}
    with pytest.raises(EmbeddedPostgresError, match="belongs to the user 'daemon'"):
        EmbeddedPostgres(own_data_dir).ensure_running()
    assert {path: path.stat().st_uid for path in own_data_dir.rglob("*")} == before


def _as_daemon(account: ServerAccount) -> tuple[str, ...]:
    return tuple(
        word.replace(str(account.uid), "1").replace(str(account.gid), "1")
        for word in account.prefix
    )
