"""Commands of manage.py, web servers and workers, each in a process forked from one that has
imported everything: a new process needs a second or two of a processor for that.

Run as ``python -m tests.processes.command_server``; reads a line of JSON for each call. "run" is
followed by a command's seconds, arguments, environment, and the files for what it prints on stdout
and stderr; its exit code is printed. "start" is followed by the arguments of a Python that goes on
running, and the file for what it prints; its process id is printed.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Ended:
    """A command that came to its end, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class CommandServer:
    """The other end: runs commands with ``environment``. Ends with its starter at the latest."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.command_server"],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], seconds: float
    ) -> Ended:
        """Run a command to its end, or kill it after so many seconds.

        ``environment`` is on top of the server's. It isn't seen by what is read at imports.
        """
        with tempfile.TemporaryDirectory(prefix="command-") as folder:
            out, error = Path(folder) / "out", Path(folder) / "error"
            code = self._ask("run", seconds, arguments, environment, str(out), str(error))
            return Ended(code, out.read_text(encoding="utf-8"), error.read_text(encoding="utf-8"))

    def start(self, arguments: Sequence[str], console: Path) -> int:
        """Start a Python with these arguments, such as "-m" and a module; returns its id."""
        return self._ask("start", arguments, str(console))

    def _ask(self, *asked: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.communicate()


class Started:
    """The processes that go on running: whoever waits until one has ended isn't their parent."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def add(self, process_id: int) -> None:
        self._ids.add(process_id)
        self.bury()

    def bury(self, *_: object) -> None:
        for each in tuple(self._ids):
            if os.waitpid(each, os.WNOHANG)[0]:
                self._ids.discard(each)


def main() -> None:
    """Serve until stdin ends."""
    # Importing makes many objects and hardly any garbage: see manage.py. It is collected again in
    # the processes that are forked.
    gc.disable()
    import django  # noqa: PLC0415 nothing that starts a server needs it

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    from django.urls import get_resolver  # noqa: PLC0415

    # Every command's checks look at them.
    assert get_resolver().url_patterns
    started = Started()
    signal.signal(signal.SIGCHLD, started.bury)
    for line in sys.stdin:
        what, *asked = json.loads(line)
        if what == "run":
            code = _to_its_end(*asked)
            print(code, flush=True)  # noqa: T201
            continue
        preload()
        child = os.fork()
        if not child:
            return _become(*asked)
        started.add(child)
        print(child, flush=True)  # noqa: T201
    return None


@cache
def preload() -> None:
    """Load what a server loads before its own forks, and spare it from collecting that again."""
    from sessions_app.embedding.facade import load_early  # noqa: PLC0415

    for name in ("sessions_app.tasks", "sessions_app.recall.recall_steps", "psutil"):
        import_module(name)
    load_early()
    gc.freeze()


def _to_its_end(seconds: float, *command: object) -> int | None:
    process = FORK.Process(target=_run, args=command)
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode


def _run(arguments: list[str], environment: dict[str, str], out: str, error: str) -> None:
    import manage  # noqa: PLC0415

    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(environment)
    for stream, path in ((sys.stdout, out), (sys.stderr, error)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), stream.fileno())
    sys.argv = ["manage.py", *arguments]
    manage.main()


def _become(arguments: list[str], console: str) -> None:
    """Run as ``python arguments`` would."""
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    printed = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), printed, printed)):
        os.dup2(opened, number)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
