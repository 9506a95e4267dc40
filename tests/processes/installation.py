"""One memory server as it really runs: web server and workers as processes of their own, on
an embedded PostgreSQL, in folders of their own."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import (
    Places,
    is_alive,
    postmaster_of,
    stop_postmaster,
)
from memoryproject.foundation.embedded_postgres.server import FileLock
from memoryproject.programs import GUNICORN_CONF
from tests.processes import plain_http
from tests.processes.command_server import REPOSITORY, CommandServer, Ended
from tests.processes.waiting import wait_until

if TYPE_CHECKING:
    from tests.processes.front_door import FrontDoor

COMMAND_SECONDS = 120
WORKING = ("answer", "qcluster")
# Below those that Linux and macOS give to whoever asks for any.
PORTS = (15_000, 32_000)
# Where a run of the tests shares what it made.
SHARED_FOLDER = "TESTS_SHARED_FOLDER"
PREPARE = """
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("createcachetable")
"""


@dataclass(frozen=True)
class Begun:
    """A Python that has been started, until it ends."""

    process: psutil.Process
    server: CommandServer
    files: tuple[Path, Path]

    def end(self, seconds: float = COMMAND_SECONDS) -> Ended:
        """Wait for it."""
        self.process.wait(seconds)
        printed = [file.read_text(encoding="utf-8") for file in self.files]
        return Ended(self.server.code(self.process.pid), *printed)


class Installation:
    """``environment`` is on top of this process's own. Nothing runs until it is started."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        # What its processes print.
        self.console = folder / "output.log"
        self.port = free_port()
        self.environment = {
            **os.environ,
            **environment,
            "DATA_DIR": str(self.data_dir),
            "LOG_DIR": str(folder / "logs"),
            "PORT": str(self.port),
            "WEB_BIND": f"127.0.0.1:{self.port}",
        }
        # By their names: web, answer, qcluster, launcher; with a front door webhooks and caddy.
        self.programs: dict[str, psutil.Process] = {}
        self.front_door: FrontDoor | None = None
        # By what their environments have on top of ours.
        self._servers: dict[frozenset[tuple[str, str]], CommandServer] = {}
        self._begun = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """The tables. No schedules: what is taken up again is so without the clock's help."""
        if SHARED_FOLDER in os.environ:
            copy_cluster(migrated_data_dir(), self.data_dir)
        else:
            # Started as a program, not by a run of the tests.
            self.migrate()

    def migrate(self) -> None:
        """The tables, made by the migrations."""
        self.manage("shell", "-v", "0", "-c", PREPARE)

    def manage(self, *arguments: str) -> str:
        """Run a command of manage.py to its end; returns what it printed."""
        ended = self.attempt(*arguments)
        assert ended.returncode == 0, f"{ended.stderr}\n{ended.stdout}"
        return ended.stdout

    def attempt(
        self, *arguments: str, seconds: float = COMMAND_SECONDS, **environment: str
    ) -> Ended:
        """Run a command of manage.py that may fail, or take longer than usual."""
        return self._command_server().run(arguments, environment, seconds)

    def start_command(self, *arguments: str) -> psutil.Process:
        """Start a command of manage.py, which prints where the servers do."""
        return self._start(sys.executable, "manage.py", *arguments)

    def begin(self, *arguments: str, **environment: str) -> Begun:
        """Start a Python with these arguments, such as "manage.py" and a command."""
        self._begun += 1
        out, error = (self.folder / f"begun-{self._begun}.{name}" for name in ("out", "error"))
        server = self._command_server(**environment)
        return Begun(psutil.Process(server.start(arguments, out, error)), server, (out, error))

    def _command_server(self, **environment: str) -> CommandServer:
        key = frozenset(environment.items())
        if key not in self._servers:
            self._servers[key] = CommandServer({**self.environment, **environment})
        return self._servers[key]

    def start(self) -> None:
        """Web server and workers, up when this returns."""
        for name in ("web", "answer", "qcluster"):
            self.start_program(name)
        self.wait_until_ready()

    def launch(self) -> psutil.Process:
        """Start everything as `make run` does; the launcher, which starts the others."""
        self.folder.mkdir(exist_ok=True)
        launcher = self._start(sys.executable, "-m", "memoryproject.launch")
        self.programs["launcher"] = launcher
        self.wait_until_ready()
        return launcher

    def launch_in_vain(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Start everything, which must be refused."""
        return subprocess.run(
            [sys.executable, "-m", "memoryproject.launch"],
            cwd=REPOSITORY,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def start_program(self, name: str) -> psutil.Process:
        """Start web, answer or qcluster; or one of the front door's where there is one."""
        if self.front_door is not None:
            started = self.front_door.start_program(name)
        elif name == "web":
            started = self._start(sys.executable, "-m", "gunicorn", "--config", str(GUNICORN_CONF))
        else:
            started = self.start_command(name)
        self.programs[name] = started
        return started

    def start_workers(self) -> None:
        """Start the two programs that work."""
        for name in WORKING:
            self.start_program(name)

    def restart_dead(self) -> None:
        """Start again what has ended of itself, as a process manager does."""
        for name, program in self.programs.items():
            if not is_alive(program):
                program.wait()
                self.start_program(name)

    def start_other(self, *command: str, **environment: str) -> psutil.Process:
        """Start a program of a test's own; whoever calls ends it, or notes it in ``programs``."""
        return self._start(*command, **environment)

    def _start(self, *command: str, **environment: str) -> psutil.Process:
        """Start a program. Web servers and workers, which are started again and again, are forked
        from one that has imported everything; `make run` starts them as they are."""
        if command[0] == sys.executable and {"manage.py", "gunicorn"} & {*command}:
            server = self._command_server(**environment)
            return psutil.Process(server.start(command[1:], self.console, self.console))
        with self.console.open("ab") as output:
            return psutil.Popen(
                command,
                cwd=REPOSITORY,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def wait_until_ready(self) -> None:
        """Until /readyz is 200, which the programs' own heartbeats are part of."""
        # Each look takes time from the programs that start.
        wait_until(
            lambda: self.answer("/readyz") == httpx.codes.OK,
            "the server is ready",
            longest_pause=0.5,
        )

    def answer(self, path: str) -> int:
        """The HTTP status of a page; 0 while nobody answers."""
        try:
            return plain_http.get(f"{self.url}{path}", timeout=10).status_code
        except httpx.HTTPError:
            return 0

    def stop_program(self, name: str) -> None:
        """Ask a program to end, and wait until it has."""
        program = self.programs.pop(name)
        program.terminate()
        program.wait(60)

    def kill_owner(self, lease_owner: str) -> None:
        """kill -9 of the process that holds a lease. Its program, which ends with it, is started
        again, as a process manager does."""
        owner = psutil.Process(int(lease_owner.split(":")[1]))
        (program,) = (each for each in self.programs.values() if owner in family(each))
        kill([owner])
        program.wait()
        self.restart_dead()

    def kill_workers(self) -> None:
        """kill -9 of the two programs that work, with their processes."""
        self._kill(*WORKING)

    def kill_web(self) -> None:
        """kill -9 of the web server with its processes."""
        self._kill("web")

    def _kill(self, *names: str) -> None:
        killed = [self.programs.pop(name) for name in names]
        kill([member for program in killed for member in family(program)])
        for program in killed:
            program.wait()

    def kill_everything(self) -> None:
        """kill -9 of all programs and PostgreSQL, as a power cut would."""
        started = list(self.programs.values())
        postmaster = postmaster_of(Places(self.data_dir))
        assert postmaster is not None
        kill([member for process in (*started, postmaster) for member in family(process)])
        for process in started:
            process.wait()

    def stop_processes(self) -> None:
        """End all programs, whatever state they are in."""
        for process in self.programs.values():
            kill(family(process))
            process.wait()
        # Last: it is the parent of those.
        while self._servers:
            self._servers.popitem()[1].stop()

    def stop(self) -> None:
        """End all that was started."""
        self.stop_processes()
        places = Places(self.data_dir)
        postmaster = postmaster_of(places)
        if postmaster is not None:
            stop_postmaster(postmaster, places.log)

    def output(self) -> str:
        """What web server and workers have printed and logged."""
        files = [self.console, *(self.folder / "logs").glob("*.log")]
        return "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())


@contextmanager
def prepared(folder: Path, **environment: str) -> Iterator[Installation]:
    """An installation with its tables. Its PostgreSQL stays up between two commands."""
    installation = Installation(folder, **environment)
    installation.prepare()
    server = EmbeddedPostgres(installation.data_dir)
    try:
        server.ensure_running()
        yield installation
    finally:
        server.release()
        installation.stop()


def migrated_data_dir() -> Path:
    """A DATA_DIR with all tables and no rows, made once a run: its processes share it."""
    shared = Path(os.environ[SHARED_FOLDER])
    shared.mkdir(parents=True, exist_ok=True)
    made = shared / "migrated"
    with FileLock(shared / "migrated.lock").exclusive():
        if not made.exists():
            template = Installation(shared / "unfinished")
            template.migrate()
            template.stop()
            # Processes are killed here, not the machine: what was written outlives them.
            with (template.data_dir / "postgres/postgresql.auto.conf").open("a") as settings:
                settings.write("fsync = off\nfull_page_writes = off\n")
            template.folder.rename(made)
    return made / "data"


def copy_cluster(source: Path, target: Path) -> None:
    """Copy a stopped server's data. Its keys stay: every installation makes its own."""
    target.mkdir(mode=source.stat().st_mode & 0o777, parents=True, exist_ok=True)
    names = [source / name for name in ("postgres", "postgres.password")]
    # Only cp keeps the owner, who isn't root.
    subprocess.run(["cp", "-a", *names, target], check=True)


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and all below it; nobody if it is gone, whoever has its id now."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill(processes: list[psutil.Process]) -> None:
    """kill -9 of all of them at once, and wait until they are gone."""
    for send in (signal.SIGSTOP, signal.SIGKILL):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(send)
    wait_until(lambda: not any(is_alive(process) for process in processes), "the killed are gone")


def free_port() -> int:
    """A port that is this process's until it ends.

    The kernel gives others, to connections and to whoever asks for any port, and no other process
    of tests chooses it as long as its file is locked.
    """
    folder = Path(tempfile.gettempdir()) / f"ports-of-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    while True:
        port = random.randrange(*PORTS)
        # Locked as long as it is open, which is until the process ends.
        file = os.open(folder / str(port), os.O_WRONLY | os.O_CREAT, 0o600)
        with suppress(OSError), socket.socket() as probe:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            probe.bind(("127.0.0.1", port))
            return port
        os.close(file)
