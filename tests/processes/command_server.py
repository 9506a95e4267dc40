"""Commands of manage.py, each in a process forked from one that has imported everything: a new
process needs two seconds for that.

Run as ``python -m tests.processes.command_server``; reads a line of JSON for each command: its
seconds, arguments, environment, and the files for what it prints on stdout and stderr. Prints its
exit code.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory(prefix="command-") as folder:
            out, error = Path(folder) / "out", Path(folder) / "error"
            asked = [seconds, arguments, environment, str(out), str(error)]
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
            return Ended(code, out.read_text(encoding="utf-8"), error.read_text(encoding="utf-8"))

    def stop(self) -> None:
        self._process.communicate()


def main() -> None:
    """Serve until stdin ends."""
    import django  # noqa: PLC0415 nothing that starts a server needs it

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryproject.settings")
    django.setup()
    from django.urls import get_resolver  # noqa: PLC0415

    # Every command's checks look at them.
    assert get_resolver().url_patterns
    for line in sys.stdin:
        seconds, *command = json.loads(line)
        process = FORK.Process(target=_run, args=command)
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        print(process.exitcode, flush=True)  # noqa: T201


def _run(arguments: list[str], environment: dict[str, str], out: str, error: str) -> None:
    import manage  # noqa: PLC0415

    os.environ.update(environment)
    for stream, path in ((sys.stdout, out), (sys.stderr, error)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), stream.fileno())
    sys.argv = ["manage.py", *arguments]
    manage.main()


if __name__ == "__main__":
    main()
