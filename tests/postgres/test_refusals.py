"""When the server can't be used: the error says what, where and what to do, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.cluster import nobody_account
from memoryproject.foundation.embedded_postgres.places import postgres_program
from tests.postgres.support import connect, run_python

pytestmark = pytest.mark.slow

ALL_CAPABILITIES = (1 << 40) - 1


def refusal(server: EmbeddedPostgres) -> str:
    with pytest.raises(EmbeddedPostgresError) as caught:
        server.ensure_running()
    return str(caught.value)


def test_a_start_that_fails_quotes_the_log(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    server.release()
    configuration = server.places.cluster / "postgresql.conf"
    original = configuration.read_text()
    configuration.write_text(f"{original}\nno_such_setting = 1\n")
    text = refusal(server)
    assert 'unrecognized configuration parameter "no_such_setting"' in text
    assert str(server.places.log) in text
    assert "DATABASE_URL" in text
    configuration.write_text(original)
    server.ensure_running()
    assert server.is_running()


def test_a_cluster_of_another_version(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    server.release()
    (server.places.cluster / "PG_VERSION").write_text("16\n")
    text = refusal(server)
    assert "made by PostgreSQL 16" in text
    assert "18" in text
    assert "requirements.txt" in text


def test_a_folder_that_is_no_cluster(new_server: EmbeddedPostgres) -> None:
    new_server.places.cluster.mkdir(parents=True)
    if os.geteuid() == 0:
        shutil.chown(new_server.places.cluster, "nobody")
    (new_server.places.cluster / "diary.txt").write_text("mine")
    assert "is not a PostgreSQL cluster" in refusal(new_server)
    assert (new_server.places.cluster / "diary.txt").read_text() == "mine"


def test_a_lost_password(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    server.release()
    kept = server.places.password.rename(server.places.data_dir / "kept")
    text = refusal(server)
    assert str(server.places.password) in text
    assert "backup" in text
    kept.rename(server.places.password)
    server.ensure_running()


def test_a_wrong_password_file(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    server.release()
    server.places.password.write_text("not it")
    text = refusal(server)
    assert "password authentication failed" in text
    assert str(server.places.password) in text


def test_data_dir_is_a_file(data_dir: Path) -> None:
    data_dir.write_text("a file")
    assert "not a folder" in refusal(EmbeddedPostgres(data_dir))
    assert data_dir.read_text() == "a file"


def test_data_dir_below_a_file(data_dir: Path) -> None:
    data_dir.write_text("a file")
    assert "DATA_DIR" in refusal(EmbeddedPostgres(data_dir / "below"))


def test_data_dir_is_shared_by_all_users(data_dir: Path) -> None:
    data_dir.mkdir()
    data_dir.chmod(0o1777)
    text = refusal(EmbeddedPostgres(data_dir))
    assert "all users" in text
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o1777


def test_the_socket_folder_in_tmp_is_not_trusted_when_others_may_enter(deep_data_dir: Path) -> None:
    server = EmbeddedPostgres(deep_data_dir)
    server.places.socket_root.mkdir(mode=0o755)
    text = refusal(server)
    assert str(server.places.socket_root) in text
    assert "private" in text


@pytest.mark.usefixtures("as_root")
def test_the_socket_folder_of_somebody_else_is_not_trusted(deep_data_dir: Path) -> None:
    server = EmbeddedPostgres(deep_data_dir)
    server.places.socket_root.mkdir(mode=0o700)
    shutil.chown(server.places.socket_root, "nobody")
    assert "its owner is 'nobody'" in refusal(server)


@pytest.mark.usefixtures("as_root")
def test_roots_database_is_not_opened_by_another_user(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    server.release()
    result = run_python(
        "import sys; from pathlib import Path\n"
        "from memoryproject.foundation import embedded_postgres as server\n"
        "try: server.EmbeddedPostgres(Path(sys.argv[1])).ensure_running()\n"
        "except server.EmbeddedPostgresError as error: print(error)",
        server.places.data_dir,
        account=nobody_account(setpriv="setpriv", capabilities=ALL_CAPABILITIES),
    )
    assert result.stderr == ""
    assert "belongs to the user 'root', but this process runs as 'nobody'" in result.stdout
    assert "Run it as the user that first started it, root" in result.stdout


@pytest.mark.usefixtures("as_root")
def test_another_users_database_is_not_opened_by_root(new_server: EmbeddedPostgres) -> None:
    new_server.places.data_dir.mkdir(mode=0o755)
    new_server.places.cluster.mkdir()
    shutil.chown(new_server.places.cluster, "daemon")
    text = refusal(new_server)
    assert "belongs to the user 'daemon', but this process runs as 'root'" in text
    assert [path.name for path in new_server.places.data_dir.iterdir()] == ["postgres"]
    assert stat.S_IMODE(new_server.places.data_dir.stat().st_mode) == 0o755


def test_root_without_setpriv() -> None:
    with pytest.raises(EmbeddedPostgresError, match=r"util-linux.*ordinary user.*DATABASE_URL"):
        nobody_account(setpriv=None, capabilities=ALL_CAPABILITIES)


def test_root_without_the_capability() -> None:
    with pytest.raises(EmbeddedPostgresError, match=r"CAP_DAC_READ_SEARCH.*DATABASE_URL"):
        nobody_account(setpriv="/usr/bin/setpriv", capabilities=ALL_CAPABILITIES & ~0b110)


def test_root_passes_on_the_weakest_capability_that_does() -> None:
    account = nobody_account(setpriv="setpriv", capabilities=ALL_CAPABILITIES)
    assert "--ambient-caps=+dac_read_search" in account.prefix
    account = nobody_account(setpriv="setpriv", capabilities=0b010)
    assert "--ambient-caps=+dac_override" in account.prefix


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(EmbeddedPostgresError, match=r"no_such_program.*requirements\.txt"):
        postgres_program("no_such_program")


def test_a_password_by_which_nobody_else_gets_in(new_server: EmbeddedPostgres) -> None:
    new_server.ensure_running()
    assert len(new_server.password) >= 32
    with connect(new_server) as connection:
        query = "SELECT rolpassword FROM pg_authid WHERE rolname = 'memory'"
        (stored,) = connection.execute(query).fetchone() or ("",)
    assert stored.startswith("SCRAM-SHA-256$")
