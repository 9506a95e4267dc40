"""A file system that is really full, under a real server (ERR-SESSION-002)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryproject.foundation.embedded_postgres.places import is_alive
from tests.processes.installation import Installation, family, kill
from tests.processes.posting import cloud_text, new_phone
from tests.processes.stage import Stage, stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

FULL = "⚠️ Cannot save conversation history - system storage full. Please contact administrator."
SIZE = "192m"


@pytest.fixture(scope="module")
def small_disk() -> Iterator[Path]:
    """A file system of its own in memory."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    with tempfile.TemporaryDirectory(prefix="disk-") as folder:
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "tmpfs", folder]
        if subprocess.run(command, check=False).returncode != 0:
            pytest.skip("this machine lets nobody mount")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


class Ballast:
    """A file that takes all the space there is."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def fill(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            for block in (1024 * 1024, 4096, 1):
                while True:
                    try:
                        if file.write(b"x" * block) < block:
                            break
                    except OSError:
                        break

    def free(self) -> None:
        self._path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def full_stage(small_disk: Path) -> Iterator[Stage]:
    """On the small disk are the data, the log files, and what `make run` prints."""
    with stage(run=Installation.launch, parent=small_disk) as started:
        yield started


@pytest.fixture
def ballast(full_stage: Stage, small_disk: Path) -> Iterator[Ballast]:
    ballast = Ballast(small_disk)
    yield ballast
    ballast.free()


def test_err_session_002_told_kept_whole_and_answered_when_there_is_space(
    full_stage: Stage, ballast: Ballast
) -> None:
    live, phone = full_stage, new_phone()
    live.post.say(phone, "before it is full")
    live.wait_for_answers(phone, 1)

    ballast.fill()
    payload = cloud_text(phone, "while it is full")
    # Of more than the space that is left inside of files that are there already.
    (message,) = payload["entry"][0]["changes"][0]["value"]["messages"]
    message["unknown"] = os.urandom(500_000).hex()
    for _ in range(2):
        assert live.post.cloud(payload).status_code == 503, "the provider is to repeat it"
    wait_until(lambda: FULL in live.graph.texts_to(phone), "the person is told")
    assert live.installation.answer("/readyz") == 503
    assert live.installation.answer("/healthz") == 200
    kill_supervisor(live)
    wait_until(lambda: live.installation.answer("/healthz") == 200, "all is started again")

    ballast.free()
    wait_until(lambda: live.post.cloud(payload).status_code == 200, "the repeat is taken")
    answers = live.wait_for_answers(phone, 3)
    assert answers == ["answer to: before it is full", FULL, "answer to: while it is full"]
    messages = live.database.messages(f"{phone}@c.us")
    assert [each["order_num"] for each in messages] == [1, 2, 3, 4]
    assert "CRITICAL" in live.installation.output()
    live.installation.wait_until_ready()
    # What was recorded meanwhile is sealed, each event with its line.
    live.installation.manage("audit_verify")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
def test_make_run_needs_no_room_for_its_output() -> None:
    def start(installation: Installation) -> None:
        console, installation.console = installation.console, Path("/dev/full")
        installation.launch()
        installation.console = console

    with stage(run=start) as started:
        for text in ("nobody hears the launcher", "nor what it says of a kill"):
            phone = new_phone()
            started.post.say(phone, text)
            assert started.wait_for_answers(phone, 1) == [f"answer to: {text}"]
            kill_supervisor(started)
            started.installation.wait_until_ready()
        launcher = started.installation.programs.pop("launcher")
        launcher.terminate()
        assert launcher.wait(60) == 0


def kill_supervisor(live: Stage) -> None:
    """The launcher says so, and starts another one, once nothing of the old one is left."""
    (supervisor,) = live.installation.programs["launcher"].children()
    old = family(supervisor)
    kill([supervisor])
    wait_until(lambda: not any(is_alive(each) for each in old), "what was left of it has ended")
