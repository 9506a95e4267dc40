"""A fresh clone of this project, and `make run` in it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path

import httpx
import psutil
import pytest

from tests.processes import plain_http
from tests.processes.command_server import REPOSITORY
from tests.processes.installation import copy_cluster, free_port, kill, migrated_data_dir
from tests.processes.waiting import wait_until

SETTING = re.compile(r"^#?\s?([A-Z][A-Z_]+)=", re.MULTILINE)
PASSWORD = "a-password-of-tests"
# The first start makes a database: on a busy machine that takes more than a minute.
START_SECONDS = 180


class Clone:
    """``run`` starts everything; at most one run at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._output = folder.parent / "output.log"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self, **settings: str) -> dict[str, str]:
        """As in a newcomer's shell: nothing is set but what is given."""
        known = SETTING.findall((REPOSITORY / ".env.example").read_text(encoding="utf-8"))
        kept = {name: value for name, value in os.environ.items() if name not in known}
        kept.pop("DJANGO_SETTINGS_MODULE", None)
        return {**kept, "PORT": str(self.port), "ADMIN_PASSWORD": PASSWORD, **settings}

    def run(self) -> subprocess.Popen[bytes]:
        """`make run`, ready when this returns; the leader of a group, as in a terminal."""
        started = self._start("make", "run")
        wait_until(
            lambda: started.poll() is not None or self.is_ready(),
            "make run is ready",
            seconds=START_SECONDS,
        )
        assert started.poll() is None, self.output()
        return started

    def launch(self, **settings: str) -> subprocess.Popen[bytes]:
        """The launcher, just started; the leader of a group, as in a terminal."""
        python = str(self.folder / ".venv/bin/python")
        return self._start(python, "-m", "memoryproject.launch", **settings)

    def _start(self, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment(**settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def run_in_vain(self, **settings: str) -> subprocess.CompletedProcess[str]:
        """The launcher, with settings that it must refuse."""
        return subprocess.run(
            [str(self.folder / ".venv/bin/python"), "-m", "memoryproject.launch"],
            cwd=self.folder,
            env=self.environment(**settings),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def manage(self, *arguments: str) -> str:
        """A command of manage.py, as a newcomer types it."""
        done = subprocess.run(
            [str(self.folder / ".venv/bin/python"), "manage.py", *arguments],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_ready(self) -> bool:
        try:
            ready = plain_http.get(f"{self.url}/readyz", timeout=10)
        except httpx.HTTPError:
            return False
        return ready.status_code == httpx.codes.OK

    def processes(self) -> list[psutil.Process]:
        """Everything that runs in this clone's folders, PostgreSQL too."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            dead = process.status() == psutil.STATUS_ZOMBIE
            return not dead and Path(process.cwd()).is_relative_to(self.folder)
        except (psutil.Error, OSError):
            return False

    def wait_until_stopped(self, started: subprocess.Popen[bytes]) -> None:
        """Until this run has ended with everything that it started."""
        started.wait(timeout=60)
        wait_until(lambda: self.processes() == [], "no process is left")

    def output(self) -> str:
        """What all runs have printed."""
        return self._output.read_text(encoding="utf-8")


@contextmanager
def cloned(folder: Path, *, with_tables: bool = False) -> Iterator[Clone]:
    """A clone as the next commit would make it, with this process's packages, and compiled where
    this checkout is. with_tables: the first start finds a database, instead of making one and its
    tables, which takes longest."""
    for program in ("git", "make"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} here")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no git checkout, from which a clone could be made")
    target = folder / "clone"
    for name in filter(None, listed.stdout.split("\0")):
        _copy(name, target)
        if name.endswith(".py"):
            _copy(cache_from_source(name), target)
    _lend_packages(target / ".venv")
    if with_tables:
        copy_cluster(migrated_data_dir(), target / "data")
    clone = Clone(target)
    yield clone
    kill(clone.processes())


def _copy(name: str, target: Path) -> None:
    """Copy a file of the repository, with its time: Python asks compiled modules for it."""
    with suppress(FileNotFoundError):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target / name)


def _lend_packages(environment: Path) -> None:
    """A virtual environment that has what this one has, with nothing to install."""
    environment.mkdir()
    for name in ("bin", "lib", "lib64", "pyvenv.cfg"):
        if (Path(sys.prefix) / name).exists():
            (environment / name).symlink_to(Path(sys.prefix) / name)
    (environment / ".installed").touch()


def press_ctrl_c(started: subprocess.Popen[bytes]) -> None:
    """What a terminal does: the signal goes to the whole group."""
    os.killpg(started.pid, signal.SIGINT)
