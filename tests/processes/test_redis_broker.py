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

pytestmark = pytest.mark.processes


@pytest.fixture
def redis_url() -> Iterator[str]:
    """A Redis of this test alone."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("redis-server is not installed")
        pytest.skip("redis-server is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""],
            stdout=subprocess.DEVNULL,
        )
        yield f"redis://127.0.0.1:{port}/0"
        server.terminate()
        server.wait()


def test_messages_are_answered_through_redis(redis_url: str) -> None:
    with stage(run=everything, Q_BROKER=redis_url) as redis_stage:
        phone = new_phone()
        redis_stage.post.say(phone, "hello by redis")
        assert redis_stage.wait_for_answers(phone, 1) == ["answer to: hello by redis"]
