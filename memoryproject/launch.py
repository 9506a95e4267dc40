"""`make run`: start everything from a fresh clone and keep it running until Ctrl-C.

A process of its own (`launch_preparation.py`) prepares the installation and ends. This one stays as
long as the server runs, so it imports as little as possible: no Django, no database driver. It lets
supervisor run the programs of `programs.py`. Every process that uses the embedded PostgreSQL keeps
it running; this process is its last user.
"""

from __future__ import annotations

import os
import signal

# The exit code of a shell for a program that a signal ended is this and the signal's number.
SIGNALLED = 128

if __name__ == "__main__":
    # Ctrl-C during the imports below, which take most of the start, prints no traceback.
    signal.signal(signal.SIGINT, lambda number, _frame: os._exit(SIGNALLED + number))

import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from memoryproject.programs import ending_with_parent

BASE_DIR = Path(__file__).resolve().parent.parent
READY_WITHIN_SECONDS = 90
ASK_SECONDS = 5
MAX_MESSAGE_BYTES = 65_536
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Prepared:
    """The result of the preparation.

    ``data_dir``: the folder of the embedded PostgreSQL; empty without one.
    """

    supervisor_conf: str
    port: int
    log_dir: str
    data_dir: str = ""


class Child:
    """The process that this one waits for. It gets SIGTERM where this one is told to stop."""

    def __init__(self) -> None:
        # The signal that told it.
        self.stopped_by = 0
        self._process: subprocess.Popen[bytes] | None = None
        for number in STOPPING:
            signal.signal(number, self._stop)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process. Ctrl-C, which reaches a whole session, doesn't reach it."""
        command = ending_with_parent(signal.SIGTERM, command)
        self._process = None
        self._process = subprocess.Popen(command, start_new_session=True, **options)  # noqa: S603
        if self.stopped_by:
            # The signal came before the process was known.
            self._process.terminate()
        return self._process

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped_by = number
        if self._process is not None:
            self._process.terminate()


def main() -> int:
    """Run the server and return the exit code."""
    os.chdir(BASE_DIR)
    child = Child()
    code, prepared, descriptors = prepare(child)
    if prepared is None:
        return code
    lock, *shares = descriptors
    try:
        return supervise(prepared, lock, child)
    finally:
        for share in shares:
            release_database(Path(prepared.data_dir), share)


def prepare(child: Child) -> tuple[int, Prepared | None, list[int]]:
    """Run the preparation in a process of its own.

    Return the exit code, the result (None where it failed; it has said why) and two descriptors:
    the lock of DATA_DIR, and what makes this process a user of the embedded PostgreSQL, if there is
    one.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", "memoryproject.launch_preparation", str(number)]
            preparation = child.start(command, pass_fds=[number])
        message, descriptors, _, _ = socket.recv_fds(ours, MAX_MESSAGE_BYTES, 2)
    code = preparation.wait()
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if message:
        return 0, Prepared(**json.loads(message)), descriptors
    if child.stopped_by:
        code = SIGNALLED + child.stopped_by
    return code if code > 0 else SIGNALLED - code, None, []


def release_database(data_dir: Path, share: int) -> None:
    """Stop the embedded PostgreSQL as its last user: web server and workers have ended by now."""
    from memoryproject.foundation.embedded_postgres import embedded_postgres  # noqa: PLC0415 not while the server runs

    server = embedded_postgres(data_dir)
    server.adopt(share)
    server.release()


def supervise(prepared: Prepared, lock: int, child: Child) -> int:
    """Run supervisor until this process is told to stop, and return the exit code.

    Supervisor holds the lock, too: it may take a moment to end after this process.
    """
    command = [sys.executable, "-W", "ignore", "-m", "supervisor.supervisord"]
    command += ["-c", prepared.supervisor_conf]
    while not child.stopped_by:
        supervisor = child.start(command, umask=0o077, pass_fds=[lock])
        was_ready = announce(prepared, supervisor)
        code = supervisor.wait()
        if code == 0 or child.stopped_by:
            break
        say(f"\nThe process manager (supervisor) ended unexpectedly ({code}).")
        if not was_ready:
            return 1
    return 0


def announce(prepared: Prepared, supervisor: subprocess.Popen[bytes]) -> bool:
    """Print the addresses once the server is ready, and return whether it is."""
    url = f"http://127.0.0.1:{prepared.port}/"
    logs = prepared.log_dir
    for _ in range(READY_WITHIN_SECONDS * 2):
        if supervisor.poll() is not None:
            return False
        if is_ready(prepared.port):
            say(f"\nReady: {url} (admin: {url}admin/). Stop with Ctrl-C.\nLogs: {logs}\n")
            return True
        time.sleep(0.5)
    say(f"\nNot ready yet: see {url}readyz for what is missing, and the logs in {logs}.\n")
    return False


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def is_ready(port: int) -> bool:
    """Return whether /readyz answers 200.

    Without an HTTP client: urllib would stay in memory as long as the server runs.
    """
    request = f"GET /readyz HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ASK_SECONDS) as client:
            client.sendall(request.encode())
            with client.makefile("rb") as answer:
                return answer.readline().split()[1:2] == [b"200"]
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
