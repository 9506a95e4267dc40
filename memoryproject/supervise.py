"""The process of `make run` that stays: it lets supervisor run the programs of `programs.py`.

`launch.py` becomes this once the installation is prepared. As long as the server runs it imports as
little as possible: no Django, no database driver.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from memoryproject import output, programs

READY_WITHIN_SECONDS = 90
ASK_SECONDS = 5
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Child:
    """The process that this one waits for. It gets SIGTERM where this one is told to stop."""

    def __init__(self) -> None:
        self.is_stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        for number in STOPPING:
            signal.signal(number, self._stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process. Ctrl-C, which reaches a whole session, doesn't reach it."""
        command = programs.ending_with_parent(signal.SIGTERM, command)
        self._process = None
        self._process = subprocess.Popen(command, start_new_session=True, **options)  # noqa: S603
        if self.is_stopped:
            # The signal came before the process was known.
            self._process.terminate()
        return self._process

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.is_stopped = True
        if self._process is not None:
            self._process.terminate()


def main(conf: str, port: str, url: str, logs: str, data_dir: str, lock: str) -> int:
    """Keep the server running and return the exit code.

    ``url``: the address to print. ``data_dir``: the folder of the embedded PostgreSQL; empty
    without one. ``lock``: the descriptor of DATA_DIR's lock.
    """
    output.use_lossy_output("launcher")
    child = Child()
    try:
        return supervise(child, conf, int(port), url, logs, int(lock))
    finally:
        if data_dir:
            stop_database(Path(data_dir))


def stop_database(data_dir: Path) -> None:
    """Stop the embedded PostgreSQL where a killed program, its last user, has left it running."""
    from memoryproject.foundation.embedded_postgres import embedded_postgres  # noqa: PLC0415 not while the server runs

    embedded_postgres(data_dir).release()


def supervise(child: Child, conf: str, port: int, url: str, logs: str, lock: int) -> int:
    """Run supervisor until this process is told to stop, and return the exit code.

    Supervisor holds the lock, too: it may take a moment to end after this process.
    """
    command = [sys.executable, "-W", "ignore", "-m", "memoryproject.output"]
    command += ["supervisor", "supervisor.supervisord", "-c", conf]
    while not child.is_stopped:
        supervisor = child.start(command, umask=0o077, pass_fds=[lock])
        was_ready = announce(port, url, logs, supervisor)
        code = supervisor.wait()
        if code == 0 or child.is_stopped:
            break
        say(f"\nThe process manager (supervisor) ended unexpectedly ({code}).")
        if not was_ready:
            return 1
    return 0


def announce(port: int, url: str, logs: str, supervisor: subprocess.Popen[bytes]) -> bool:
    """Print the addresses once the server is ready, and return whether it is."""
    for _ in range(READY_WITHIN_SECONDS * 2):
        if supervisor.poll() is not None:
            return False
        if is_ready(port):
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
    sys.exit(main(*sys.argv[1:]))
