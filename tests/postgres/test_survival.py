"""What comes back after kills, and with what data."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import is_alive
from memoryproject.foundation.embedded_postgres.server import FileLock
from tests.postgres.support import (
    USER_PROGRAM,
    as_server_account,
    connect,
    kill_all,
    line_of,
    postmaster,
    start_python,
    wait_for,
)

pytestmark = pytest.mark.slow


def write_row(server: EmbeddedPostgres) -> None:
    with connect(server) as connection:
        connection.execute("CREATE TABLE note (text text)")
        connection.execute("INSERT INTO note VALUES ('kept')")


def rows(server: EmbeddedPostgres) -> list[tuple[str]]:
    with connect(server) as connection:
        return connection.execute("SELECT text FROM note").fetchall()


def is_locked(path: Path) -> bool:
    with FileLock(path).exclusive(wait=False) as taken:
        return not taken


def test_kill_of_every_process_loses_nothing_committed(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    write_row(server)
    kill_all(server)
    assert not server.is_running()
    server.ensure_running()
    assert rows(server) == [("kept",)]


def test_kill_of_the_postmaster_under_a_busy_query(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    write_row(server)
    connection = connect(server)
    connection.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 10000000000)")
    main = postmaster(server)
    orphan = psutil.Process(connection.info.backend_pid)
    os.kill(main.pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(main))
    assert is_alive(orphan), "the query must outlive its server for this test to mean anything"
    server.ensure_running()
    assert not is_alive(orphan)
    assert rows(server) == [("kept",)]
    connection.close()


@pytest.mark.parametrize("recorded", ["another process", "nothing"])
def test_a_misleading_postmaster_pid(server: EmbeddedPostgres, recorded: str) -> None:
    server.ensure_running()
    write_row(server)
    lock_files = (
        server.places.cluster / "postmaster.pid",
        server.places.socket_dir / ".s.PGSQL.5432.lock",
    )
    stranger = subprocess.Popen(as_server_account("/bin/sleep", "600"), cwd="/")
    pid = str(postmaster(server).pid)
    kill_all(server)
    try:
        for lock_file in lock_files:
            text = lock_file.read_text().replace(pid, str(stranger.pid), 1)
            lock_file.write_text(text if recorded == "another process" else "")
        assert not server.is_running()
        server.ensure_running()
        assert rows(server) == [("kept",)]
        server.release()
        assert not server.is_running()
        assert stranger.poll() is None, "the stranger must not be stopped in the server's place"
    finally:
        stranger.kill()
        stranger.wait()


def test_starter_killed_while_it_makes_the_cluster(data_dir: Path) -> None:
    starter = start_python(USER_PROGRAM, data_dir)
    wait_for(lambda: list(data_dir.glob("postgres.new-*/base")))
    starter.kill()
    starter.communicate()
    assert not (data_dir / "postgres").exists()
    server = EmbeddedPostgres(data_dir)
    server.ensure_running()
    with connect(server) as connection:
        assert connection.execute("SELECT '[1]'::vector").fetchone() == ("[1]",)
    kill_all(server)
    server.ensure_running()
    assert list(data_dir.glob("postgres.new-*")) == []
    server.release()


def test_starter_killed_while_the_server_starts(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    write_row(server)
    kill_all(server)
    server.release()
    pid_file = server.places.cluster / "postmaster.pid"
    pid_file.unlink()
    starter = start_python(USER_PROGRAM, server.places.data_dir)
    wait_for(pid_file.exists)
    starter.kill()
    starter.communicate()
    server.ensure_running()
    assert rows(server) == [("kept",)]


def test_a_server_on_its_way_down_is_waited_for(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    write_row(server)
    first = postmaster(server)
    # Smart shutdown: it refuses new connections, and stays until the last one is closed.
    connection = connect(server)
    first.send_signal(signal.SIGTERM)
    wait_for(lambda: not server.is_running())
    other = start_python(USER_PROGRAM, server.places.data_dir)
    wait_for(lambda: is_locked(server.places.start_lock))
    connection.close()
    assert line_of(other) not in ("", str(first.pid))
    assert rows(server) == [("kept",)]
    other.communicate(timeout=60)


def test_a_killed_server_is_stopped_by_the_last_one(server: EmbeddedPostgres) -> None:
    server.ensure_running()
    kill_all(server)
    server.release()
    assert not server.is_running()
