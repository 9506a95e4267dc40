"""kill -9 in the middle of a save of transcripts: no message is lost or doubled, and each file
is still there, or backed up and verified. And two at once."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sessions_app.transcript_files.transcript_folder import batch_name
from tests.processes.command_server import REPOSITORY
from tests.processes.database import Database
from tests.processes.installation import Installation, kill, prepared
from tests.processes.waiting import wait_until
from tests.transcripts.texts import write

pytestmark = pytest.mark.processes

FILES = 3
# 500 messages are stored at once: the first file has more, so that it is halted in between.
EXCHANGES = {1: 300, 2: 2, 3: 2}
MESSAGES = 2 * sum(EXCHANGES.values())
# What is there when a step begins is what there was at the end of the one before.
STEPS = [
    *(("Checking", 1), ("Storing", 500), ("Storing", MESSAGES)),
    *(("Backing up", 1), ("Verifying the backup", 1), ("Cleaning up", 1)),
]
CONTENT = "SELECT role, content FROM sessions_app_message ORDER BY order_num"


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    with (
        tempfile.TemporaryDirectory(prefix="transcripts-") as folder,
        prepared(
            Path(folder),
            ENABLE_MEMORY_SYSTEM="true",
            DJANGO_SETTINGS_MODULE="memoryproject.settings",
        ) as made,
    ):
        yield made


@pytest.fixture
def database(installation: Installation) -> Database:
    database = Database(installation.data_dir)
    database.rows("TRUNCATE sessions_app_chat CASCADE")
    shutil.rmtree(installation.data_dir / "transcripts", ignore_errors=True)
    return database


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, exchanges in EXCHANGES.items():
        (tmp_path / batch_name(number)).write_bytes(write(messages_of(number, exchanges)))
    return tmp_path


def messages_of(number: int, exchanges: int) -> list[tuple[str, str]]:
    return [
        (role, f"{role} {number} {place}\nUser: שלום\r")
        for place in range(exchanges)
        for role in ("user", "assistant")
    ]


ALL = [message for number, count in EXCHANGES.items() for message in messages_of(number, count)]


class Saver:
    """Saves that are halted at a step, one at a time: see tests/processes/saver.py."""

    def __init__(self, installation: Installation) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.saver"],
            cwd=REPOSITORY,
            env=installation.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, folder: Path, step: str, at: int) -> psutil.Process:
        """A save that has come to this step."""
        assert self._server.stdin is not None
        print(json.dumps([str(folder), step, at]), file=self._server.stdin, flush=True)
        halted = re.fullmatch(r"halted (\d+)", self.said())
        assert halted, "it came to its end before that step"
        return psutil.Process(int(halted[1]))

    def said(self) -> str:
        """The next line that is printed."""
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def stop(self) -> None:
        self._server.communicate()


@pytest.fixture(scope="module")
def saver(installation: Installation) -> Iterator[Saver]:
    started = Saver(installation)
    yield started
    started.stop()


def backed_up(installation: Installation) -> dict[str, str]:
    """The files of whole backups with their checksums, each as the manifest says."""
    found = {}
    for manifest in (installation.data_dir / "transcripts").glob("*/manifest.json"):
        if manifest.parent.name.endswith(".part"):
            continue
        for entry in json.loads(manifest.read_text())["files"]:
            data = (manifest.parent / entry["name"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == entry["sha256"]
            found[entry["name"]] = entry["sha256"]
    return found


def stored(database: Database) -> list[tuple[str, str]]:
    return [(row["role"], row["content"]) for row in database.rows(CONTENT)]


@pytest.mark.parametrize(("step", "at"), STEPS)
def test_killed_at_any_step_nothing_is_lost_or_doubled(
    installation: Installation, database: Database, saver: Saver, folder: Path, step: str, at: int
) -> None:
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    kill([saver.start(folder, step, at)])
    assert saver.said() == f"ended {-signal.SIGKILL}"
    wait_until(
        lambda: not database.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"),
        "the killed one's connection is gone",
    )

    assert len(stored(database)) in (0, MESSAGES)
    for name, checksum in sums.items():
        is_there = (folder / name).exists()
        assert is_there or backed_up(installation).get(name) == checksum
    if step in ("Checking", "Storing"):
        assert (stored(database), backed_up(installation)) == ([], {})

    installation.manage("chat_memory", "save", "--dir", str(folder))
    assert stored(database) == ALL
    assert list(folder.iterdir()) == []
    assert backed_up(installation) == sums
    assert not list((installation.data_dir / "transcripts").glob("*.part"))


def test_two_saves_at_once_one_works_and_the_other_says_so(
    installation: Installation, database: Database, saver: Saver, folder: Path, tmp_path: Path
) -> None:
    working = saver.start(folder, "Storing", 0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / batch_name(1)).write_bytes(write(messages_of(9, 1)))
    for place, said in ((folder, "is at work in"), (elsewhere, "into the same chat")):
        refused = installation.attempt("chat_memory", "save", "--dir", str(place))
        assert refused.returncode == 1
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr
    working.send_signal(signal.SIGUSR1)
    assert [saver.said(), saver.said()] == [f"added {MESSAGES}", "ended 0"]
    assert stored(database) == ALL
    assert sorted(path.name for path in folder.iterdir()) == ["elsewhere"]
