"""Two groups of web servers and workers on one PostgreSQL, with Redis as the broker.

The second group reaches the database through PgBouncer, whose transaction mode passes no
notification on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.cluster import server_account
from tests.processes.conftest import everything
from tests.processes.installation import Installation, free_port
from tests.processes.posting import Poster, new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

CHATS, MESSAGES = 6, 4
KEYS: dict[str, Any] = {"SECRET_KEY": "a-secret-key-of-tests-" + "x" * 40, "AUDIT_KEY": "y" * 64}
PGBOUNCER = """\
[databases]
memory = host={host} port={port} dbname={database} user={user} password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
auth_type = any
pool_mode = transaction
max_client_conn = 200
default_pool_size = 60
unix_socket_dir =
ignore_startup_parameters = extra_float_digits
"""


class Redis:
    """A Redis that keeps nothing when it ends."""

    def __init__(self, program: str, folder: str) -> None:
        self.port = free_port()
        self._command = [program, "--port", str(self.port), "--bind", "127.0.0.1"]
        self._command += ["--dir", folder, "--save", ""]
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._server = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        self._server.kill()
        self._server.wait()


def needed(program: str) -> str:
    """Skips where the program isn't there; never where all of it must be."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        assert os.environ.get("CI") != "true", f"{program} is not installed"
        pytest.skip(f"{program} is not installed")
    return found


@contextmanager
def pgbouncer(server: EmbeddedPostgres) -> Iterator[str]:
    """A PgBouncer before this server; its URL for DATABASE_URL."""
    program = needed("pgbouncer")
    listen = free_port()
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as folder:
        conf = Path(folder) / "pgbouncer.ini"
        conf.write_text(
            PGBOUNCER.format(
                host=server.host,
                port=server.port,
                database=server.database,
                user=server.user,
                password=server.password,
                listen=listen,
            )
        )
        # PgBouncer refuses root; the account of the server may also reach its socket.
        Path(folder).chmod(0o755)
        started = subprocess.Popen(
            server_account().command(Path(program), "-q", str(conf)), cwd="/"
        )
        try:
            url = f"postgresql://memory@127.0.0.1:{listen}/memory"
            wait_until(lambda: connects(url), "PgBouncer is up")
            yield url
        finally:
            started.terminate()
            started.wait()


def connects(url: str) -> bool:
    with suppress(psycopg.OperationalError), psycopg.connect(url):
        return True
    return False


@contextmanager
def second_group(first: Stage, folder: Path, database_url: str) -> Iterator[Installation]:
    """A further web server and further workers on the database of the first group."""
    settings = {**first.installation.environment, "DATABASE_URL": database_url}
    group = Installation(folder, **settings)
    # The audit log's file belongs to the database: all groups write the same one.
    group.environment["LOG_DIR"] = settings["LOG_DIR"]
    folder.mkdir()
    try:
        group.start()
        yield group
    finally:
        group.stop_processes()


@pytest.fixture(scope="module")
def broker() -> Iterator[Redis]:
    with tempfile.TemporaryDirectory() as folder:
        server = Redis(needed("redis-server"), folder)
        yield server
        server.kill()


@pytest.fixture(scope="module")
def first(broker: Redis) -> Iterator[Stage]:
    with stage(run=everything, Q_BROKER=broker.url, **KEYS) as started:
        yield started


def test_two_groups_answer_each_message_once_and_in_order(first: Stage, tmp_path: Path) -> None:
    server = EmbeddedPostgres(first.installation.data_dir)
    server.ensure_running()
    with pgbouncer(server) as url, second_group(first, tmp_path / "second", url) as second:
        posts = [first.post, Poster(second.url)]
        phones = [new_phone() for _ in range(CHATS)]
        for number in range(MESSAGES):
            for place, phone in enumerate(phones):
                # Each chat's messages come in by both groups in turn.
                posts[(number + place) % 2].say(phone, f"message {number}")
        for phone in phones:
            expected = [f"answer to: message {number}" for number in range(MESSAGES)]
            assert first.wait_for_answers(phone, MESSAGES) == expected
        # Both groups go on alone.
        first.installation.kill_workers()
        first.installation.kill_web()
        phone = new_phone()
        posts[1].say(phone, "only the second is left")
        assert first.wait_for_answers(phone, 1) == ["answer to: only the second is left"]
        second.manage("audit_verify")
    server.release()
    first.installation.start()


def test_a_redis_that_is_gone_holds_up_no_answer(broker: Redis, first: Stage) -> None:
    first.installation.manage("install_schedules")
    phone = new_phone()
    broker.kill()
    first.post.say(phone, "while there is no queue")
    assert first.wait_for_answers(phone, 1) == ["answer to: while there is no queue"]
    broker.start()
    (now,) = first.database.rows("SELECT now()")
    swept = "SELECT 1 FROM django_q_task WHERE func LIKE '%%sweep_work' AND started > %s"

    def is_swept() -> bool:
        # A cluster that has lost its broker is ended for the process manager.
        first.installation.restart_dead()
        return bool(first.database.rows(swept, now["now"]))

    wait_until(is_swept, "lost jobs are looked for")
    first.installation.wait_until_ready()
