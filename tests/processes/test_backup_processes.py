"""Backups while other processes write, and two restores at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.processes import is_alive
from tests.processes.command_server import REPOSITORY
from tests.processes.database import Database
from tests.processes.installation import Installation, family, kill
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

GODFATHER = "15550199999@c.us"
FACT = "TestCorp pays in 30 days"
OFTEN_ENOUGH = "100000"
SHOW_SESSION = "from sessions_app.models import ChatSession; print(ChatSession.objects.get().pk)"
NUMBERS = """
SELECT session.message_counter, max(order_num) AS newest, count(*) AS messages,
    session.total_tokens, sum(tokens) FILTER (WHERE order_num >= window_start) AS tokens
FROM sessions_app_chatsession session JOIN sessions_app_message USING (session_id)
GROUP BY session.session_id
"""


def installation_in(folder: Path) -> Iterator[Installation]:
    """An installation in which nothing has run yet; everything ends with it."""
    key = "the key of both installations, x"
    installation = Installation(folder, GODFATHER_PHONE=GODFATHER, BACKUP_KEY=key)
    installation.folder.mkdir()
    try:
        yield installation
    finally:
        installation.stop()


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Installation]:
    """An installation in which one thing was said."""
    for installation in installation_in(tmp_path / "full"):
        installation.prepare()
        installation.manage("chat", "--message", f"/remember {FACT}")
        yield installation


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Installation]:
    yield from installation_in(tmp_path / "new")


def start(installation: Installation, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env=installation.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def up(installation: Installation) -> Iterator[Database]:
    """Its PostgreSQL, which stays up meanwhile."""
    server = EmbeddedPostgres(installation.data_dir)
    server.ensure_running()
    try:
        yield Database(installation.data_dir)
    finally:
        server.release()


def numbers_in(database: Database) -> dict[str, int]:
    """The one session's counters, and what its messages say."""
    (found,) = database.rows(NUMBERS)
    return found


def has(database: Database, messages: int) -> bool:
    return numbers_in(database)["messages"] >= messages


def test_a_backup_is_of_one_moment_while_two_processes_write(
    full: Installation, new: Installation
) -> None:
    """They add messages to one session before it, during it and after it."""
    session_id = full.manage("shell", "-v", "0", "-c", SHOW_SESSION).strip()
    archive = full.folder / "meanwhile.zip"
    with up(full) as database:
        adder = start(
            full, "-m", "tests.processes.adder", session_id, OFTEN_ENOUGH, "first", "second"
        )
        writers = psutil.Process(adder.pid)
        try:
            assert adder.stdin is not None
            adder.stdin.write("go\n")
            adder.stdin.flush()
            before = numbers_in(database)["messages"] + 100
            wait_until(lambda: has(database, before), "messages come in")
            full.manage("backup", str(archive))
            after = numbers_in(database)["messages"]
            wait_until(lambda: has(database, after + 1), "they go on writing")
            assert [is_alive(each) for each in writers.children()] == [True, True]
        finally:
            kill(family(writers))
            adder.communicate()
    # Empty tables give way as no tables do, and to make them takes longer than the rest.
    new.prepare()
    new.manage("restore", str(archive))
    with up(new) as database:
        found = numbers_in(database)
    assert found["message_counter"] == found["newest"] == found["messages"]
    assert found["total_tokens"] == found["tokens"]
    assert before <= found["messages"] <= after


def test_of_two_restores_one_restores_everything_and_the_other_is_refused(
    full: Installation, new: Installation
) -> None:
    archive = full.folder / "all.zip"
    full.manage("backup", str(archive))
    started = [start(new, "manage.py", "restore", str(archive)) for _ in range(2)]
    told = [restoring.communicate(timeout=120)[1] for restoring in started]
    ended = [restoring.returncode for restoring in started]
    assert sorted(ended) == [0, 1], told
    refused = told[ended.index(1)]
    assert "Another restore is at work" in refused or "holds data already" in refused
    assert "Traceback" not in refused

    assert FACT in new.manage("chat", "--message", "When does TestCorp pay?")
    for name in ("secret.key", "audit.key"):
        assert (new.data_dir / name).read_bytes() == (full.data_dir / name).read_bytes()
