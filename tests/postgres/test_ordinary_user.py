"""The server as an ordinary user has it, also where the tests run as root."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryproject.postgres import EmbeddedPostgres, EmbeddedPostgresError
from memoryproject.postgres.accounts import ServerAccount, server_account
from tests.postgres.conftest import end_server
from tests.postgres.support import run_python

PROGRAM = """
import os, stat, sys
from pathlib import Path
import psycopg
from memoryproject.postgres import EmbeddedPostgres
from memoryproject.postgres.processes import postmaster_of
server = EmbeddedPostgres(Path(sys.argv[1]))
for _ in range(2):
    server.ensure_running()
    main = postmaster_of(server.places.cluster)
    print(os.geteuid() != 0, main.uids().real == os.geteuid(), os.getsid(main.pid) == os.getsid(0))
    settings = {"user": "memory", "password": server.password, "dbname": "memory"}
    with psycopg.connect(host=server.host, port=server.port, **settings) as connection:
        print(connection.execute("SELECT '[1]'::vector").fetchone())
    server.release()
print(server.is_running())
print(oct(os.stat(sys.argv[1]).st_mode), {os.stat(p).st_uid for p in Path(sys.argv[1]).iterdir()}
      == {os.geteuid()})
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
def test_root_leaves_an_ordinary_users_database_alone(
    account: ServerAccount, own_data_dir: Path
) -> None:
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
