"""Background jobs through Redis instead of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import pytest

from tests.processes.conftest import everything
from tests.processes.installation import free_port
from tests.processes.posting import new_phone
from tests.processes.stage import stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes


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


@pytest.fixture
def redis() -> Iterator[Redis]:
    """A Redis of this test alone."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("redis-server is not installed")
        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory() as folder:
        server = Redis(program, folder)
        yield server
        server.kill()


def test_a_redis_that_is_gone_holds_up_no_answer_and_its_jobs_are_found_again(redis: Redis) -> None:
    with stage(run=everything, Q_BROKER=redis.url) as live:
        live.installation.manage("install_schedules")
        phone = new_phone()
        live.post.say(phone, "hello")
        assert live.wait_for_answers(phone, 1) == ["answer to: hello"]
        redis.kill()
        live.post.say(phone, "while there is no queue")
        assert live.wait_for_answers(phone, 2)[1] == "answer to: while there is no queue"
        redis.start()
        (now,) = live.database.rows("SELECT now()")
        swept = "SELECT 1 FROM django_q_task WHERE func LIKE '%%sweep_work' AND started > %s"

        def is_swept() -> bool:
            # A cluster that has lost its broker is ended for the process manager.
            live.installation.restart_dead()
            return bool(live.database.rows(swept, now["now"]))

        wait_until(is_swept, "lost jobs are looked for")
        live.installation.wait_until_ready()
