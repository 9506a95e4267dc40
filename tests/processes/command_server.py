"""Commands of manage.py, web servers and workers, each in a process forked from one that has
imported everything: a new process needs more than two seconds of a processor for that.

Run as ``python -m tests.processes.command_server``, it imports what needs no settings, once for
all tests of a process. Then it forks a server for each environment that comes over the socket that
is its stdin, with a socket of the server's own.

A server imports the rest, and reads a line of JSON for each call. "run" is followed by a command's
seconds, arguments, environment, and the files for what it prints on stdout and stderr; its exit
code is printed. "start" is followed by the arguments of a Python that goes on running, and the
files for what it prints; its process id is printed. "code" is followed by the id of one that has
ended; its exit code is printed.
"""

from __future__ import annotations

import atexit
import gc
import json
import multiprocessing
import os
import runpy
import signal
import socket
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
# What is imported slowly, and reads neither settings nor the environment.
NEED_NO_SETTINGS = (
    *("django.db.models", "django.contrib.admin.filters", "psycopg", "numpy", "requests"),
    *("openai", "httpx", "mcp", "wordllama", "markdown_it", "dateparser"),
    *("memoryproject.foundation.redaction.redact", "cards_app.rules.names"),
    *("memoryproject.foundation.retrieval.subqueries", "memories_app.facts.frames"),
    *("sessions_app.conversations.phrases", "sessions_app.promises.promise_patterns"),
)


@dataclass(frozen=True)
class Ended:
    """A command that came to its end, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class CommandServer:
    """The other end: runs commands with ``environment``. Ends with its starter at the latest."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_parent(), [b" "], [theirs.fileno()])
        self._socket = ours
        self._lines = ours.makefile("rw", encoding="utf-8")
        self._write(dict(environment))

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

    def start(self, arguments: Sequence[str], out: Path, error: Path) -> int:
        """Start a Python with these arguments, such as "-m" and a module; returns its id."""
        return self._ask("start", arguments, str(out), str(error))

    def code(self, process_id: int) -> int:
        """Return the exit code of one that was started and has ended."""
        return self._ask("code", process_id)

    def _ask(self, *asked: object) -> int:
        self._write(asked)
        return int(self._lines.readline())

    def _write(self, what: object) -> None:
        print(json.dumps(what), file=self._lines, flush=True)

    def stop(self) -> None:
        """Return when it has ended, and all commands with it."""
        self._socket.shutdown(socket.SHUT_WR)
        self._lines.read()
        self._lines.close()
        self._socket.close()


@cache
def _parent() -> socket.socket:
    """The socket of the process from which servers are forked. It ends with this process."""
    ours, theirs = socket.socketpair()
    with theirs:
        program = [sys.executable, "-m", "tests.processes.command_server"]
        process = subprocess.Popen(program, cwd=REPOSITORY, stdin=theirs.fileno())

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class Started:
    """The processes that go on running: whoever waits until one has ended isn't their parent."""

    def __init__(self) -> None:
        self._codes: dict[int, int | None] = {}

    def add(self, process_id: int) -> None:
        self._codes[process_id] = None
        self.bury()

    def code(self, process_id: int) -> int | None:
        self.bury()
        return self._codes[process_id]

    def bury(self, *_: object) -> None:
        for each, code in tuple(self._codes.items()):
            if code is None and (ended := os.waitpid(each, os.WNOHANG))[0]:
                self._codes[each] = os.waitstatus_to_exitcode(ended[1])


def main() -> None:
    """Fork a server for each environment until stdin ends."""
    # Importing makes many objects and hardly any garbage: see manage.py. It is collected again in
    # the processes that are forked.
    gc.disable()
    for name in NEED_NO_SETTINGS:
        import_module(name)
    gc.freeze()
    servers = Started()
    signal.signal(signal.SIGCHLD, servers.bury)
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as asked:
        while found := socket.recv_fds(asked, 1, 1)[1]:
            child = os.fork()
            if not child:
                asked.close()
                # Commands inherit neither.
                for number in (sys.stdin.fileno(), sys.stdout.fileno()):
                    os.dup2(found[0], number)
                os.close(found[0])
                return _serve()
            os.close(found[0])
            servers.add(child)
    return None


def _serve() -> None:
    """Set Django up, and do what is asked until stdin ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(json.loads(sys.stdin.readline()))
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
        if what == "code":
            print(started.code(*asked), flush=True)  # noqa: T201
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


def _become(arguments: list[str], *files: str) -> None:
    """Run as ``python arguments`` would."""
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    printed = [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for file in files]
    for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), *printed)):
        os.dup2(opened, number)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
