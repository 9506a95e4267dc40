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

WORKERS = 4


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


def test_a_redis_that_loses_its_jobs_loses_no_message(redis: Redis) -> None:
    with stage(run=everything, Q_BROKER=redis.url) as live:
        before, during, queued, gone = (new_phone() for _ in range(4))
        live.post.say(before, "hello by redis")
        assert live.wait_for_answers(before, 1) == ["answer to: hello by redis"]
        hold = live.openai.hold_chat("during it")
        busy = [during, *(new_phone() for _ in range(WORKERS - 1))]
        for phone in busy:
            live.post.say(phone, "during it")
        wait_until(lambda: hold.reached >= WORKERS, "every worker waits for the model")
        live.post.say(queued, "queued before it")

        redis.kill()
        # The webhook is taken: what it stored needs no queue.
        live.post.say(gone, "while there is no queue")
        hold.release()
        for phone in busy:
            assert live.wait_for_answers(phone, 1) == ["answer to: during it"]
        redis.start()
        live.sweep(unconfirmed_after_seconds=120)
        assert live.wait_for_answers(queued, 1) == ["answer to: queued before it"]
        assert live.wait_for_answers(gone, 1) == ["answer to: while there is no queue"]
        live.installation.wait_until_ready()
