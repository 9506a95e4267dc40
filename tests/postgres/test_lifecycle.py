"""Starting, sharing and stopping the server."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import psutil
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres, embedded_postgres
from tests.postgres.support import (
    USER_PROGRAM,
    connect,
    kill_all,
    line_of,
    postmaster,
    start_python,
    start_user,
)

pytestmark = pytest.mark.slow

COMING_AND_GOING = """
import sys
from pathlib import Path
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from tests.postgres.support import connect
server = EmbeddedPostgres(Path(sys.argv[1]))
for _ in range(6):
    server.ensure_running()
    with connect(server) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    server.release()
print("done")
"""


def test_knowing_the_server_starts_nothing_and_writes_nothing(data_dir: Path) -> None:
    server = EmbeddedPostgres(data_dir)
    assert server.connection_settings() == {
        "NAME": "memory",
        "USER": "memory",
        "PASSWORD": "",
        "HOST": str(data_dir.resolve() / "postgres-socket"),
        "PORT": 5432,
    }
    assert server.password == ""
    assert not server.is_running()
    server.release()
    assert not data_dir.exists()


def test_one_instance_a_process_and_data_dir(data_dir: Path) -> None:
    assert embedded_postgres(data_dir) is embedded_postgres(data_dir / ".." / "data")


def test_first_start_makes_a_durable_database_with_vectors(new_server: EmbeddedPostgres) -> None:
    new_server.ensure_running()
    assert new_server.is_running()
    with connect(new_server) as connection:
        shown = {
            name: connection.execute(f"SHOW {name}").fetchone()
            for name in ("fsync", "full_page_writes", "synchronous_commit", "data_checksums")
        }
        distance = connection.execute("SELECT '[1,0]'::vector <=> '[0,1]'::vector").fetchone()
        encoding = connection.execute("SHOW server_encoding").fetchone()
    assert set(shown.values()) == {("on",)}
    assert distance == (1.0,)
    assert encoding == ("UTF8",)


def test_only_the_socket_and_only_the_password_let_in(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    with connect(server) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    with pytest.raises(Exception, match="password authentication failed"):
        connect(server, password="wrong")


def test_full_text_sees_words_between_signs(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    with connect(server) as connection:
        row = connection.execute("SELECT datctype FROM pg_database WHERE datname='memory'")
        if row.fetchone() != ("C.UTF-8",):
            pytest.skip("this system has no C.UTF-8")
        words = "SELECT tsvector_to_array(to_tsvector('simple', 'owes ₪5000 “שלום”'))"
        assert connection.execute(words).fetchone() == (["5000", "owes", "שלום"],)


def test_everything_is_private_and_nothing_outside_changes(data_dir: Path) -> None:
    outside = [data_dir.parent, *data_dir.parent.parents]
    before = [(path.stat().st_mode, path.stat().st_uid) for path in outside]
    data_dir.mkdir(mode=0o755)
    server = EmbeddedPostgres(data_dir)
    server.ensure_running()
    server.release()
    assert [(path.stat().st_mode, path.stat().st_uid) for path in outside] == before
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data_dir.iterdir()}
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert modes == {
        "postgres": 0o700,
        "postgres-socket": 0o700,
        "postgres.log": 0o600,
        "postgres.password": 0o600,
        "postgres.start.lock": 0o600,
        "postgres.users.lock": 0o600,
    }


def test_a_server_that_a_killed_user_left_is_stopped_by_others(server: EmbeddedPostgres) -> None:
    """The launcher ends so, which isn't a user itself."""
    killed = start_user(server.places.data_dir)
    server.release()
    assert server.is_running()
    killed.kill()
    killed.communicate()
    assert server.is_running()
    server.release()
    assert not server.is_running()


def test_many_processes_at_once_share_one_server(data_dir: Path) -> None:
    users = [start_python(USER_PROGRAM, data_dir) for _ in range(5)]
    servers = {line_of(process) for process in users}
    assert servers == {str(postmaster(EmbeddedPostgres(data_dir)).pid)}
    for process in users:
        assert EmbeddedPostgres(data_dir).is_running()
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert not EmbeddedPostgres(data_dir).is_running(), "the last one out must stop it"


def test_users_who_come_and_go_always_find_a_server(data_dir: Path) -> None:
    users = [start_python(COMING_AND_GOING, data_dir) for _ in range(4)]
    for process in users:
        out, errors = process.communicate(timeout=120)
        assert (out, errors) == ("done\n", "")
    assert not EmbeddedPostgres(data_dir).is_running()


def test_a_server_in_use_survives_the_one_who_started_it(server: EmbeddedPostgres) -> None:
    starter = start_user(server.places.data_dir)
    server.ensure_running()
    starter.communicate(timeout=60)
    assert server.is_running()
    server.release()
    assert not server.is_running()
    server.release()


def test_a_killed_user_does_not_keep_the_server(server: EmbeddedPostgres) -> None:
    killed = start_user(server.places.data_dir)
    server.ensure_running()
    killed.kill()
    killed.communicate()
    server.release()
    assert not server.is_running()


def test_ctrl_c_in_the_terminal_does_not_reach_the_server(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    process = postmaster(server)
    assert os.getsid(process.pid) != os.getsid(0)
    assert os.getpgid(process.pid) != os.getpgid(0)
    assert process.ppid() != os.getpid()


def test_the_server_inherits_none_of_our_secrets(data_dir: Path) -> None:
    program = f"import os; os.environ['OPENAI_API_KEY'] = 'sample'\n{USER_PROGRAM}"
    user = start_python(program, data_dir)
    assert line_of(user).isdigit()
    try:
        environment = postmaster(EmbeddedPostgres(data_dir)).environ()
    except psutil.AccessDenied:
        pytest.skip("not allowed to read another user's environment here")
    finally:
        user.communicate(timeout=60)
    assert "LC_ALL" in environment
    assert "OPENAI_API_KEY" not in environment


def test_a_dropped_database_comes_back_at_the_next_start(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    with connect(server, dbname="postgres") as connection:
        connection.execute("DROP DATABASE memory")
    kill_all(server)
    again = start_user(server.places.data_dir)
    with connect(server) as connection:
        assert connection.execute("SELECT '[1]'::vector").fetchone() == ("[1]",)
    again.communicate(timeout=60)


def test_a_path_too_long_for_a_socket(deep_data_dir: Path) -> None:
    server = EmbeddedPostgres(deep_data_dir)
    server.ensure_running()
    with connect(server) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    root = Path(server.host).parent
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert root.stat().st_uid == os.geteuid()
    server.release()
    assert not server.is_running()


def test_leaving_after_the_data_was_deleted_is_quiet(server: EmbeddedPostgres) -> None:
    user = start_user(server.places.data_dir)
    kill_all(server)
    shutil.rmtree(server.places.data_dir)
    _, errors = user.communicate(timeout=60)
    assert (user.returncode, errors) == (0, "")
