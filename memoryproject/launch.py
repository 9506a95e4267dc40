"""`make run`: start everything from a fresh clone and keep it running until Ctrl-C.

A process of its own (`launch_preparation.py`) prepares the installation and ends. This one stays as
long as the server runs, so it imports as little as possible: no Django, no database driver. It lets
supervisor run the programs of `programs.py`. Every process that uses the embedded PostgreSQL keeps
it running; this process is its last user.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
READY_WITHIN_SECONDS = 90
ASK_SECONDS = 5
MAX_MESSAGE_BYTES = 65_536
KILLING = (signal.SIGTERM, signal.SIGHUP)
# The exit code of a shell for a program that a signal ended is this and the signal's number.
SIGNALLED = 128


@dataclass(frozen=True)
class Prepared:
    """The result of the preparation.

    ``socket_dir``: the folder of the front door's sockets, to be removed at the end; empty where it
    is part of DATA_DIR. ``data_dir``: the folder of the embedded PostgreSQL; empty without one.
    """

    supervisor_conf: str
    port: int
    log_dir: str
    socket_dir: str = ""
    data_dir: str = ""


def main() -> int:
    """Run the server and return the exit code."""
    os.chdir(BASE_DIR)
    code, prepared, share = prepare()
    if prepared is None:
        return code
    try:
        return supervise(prepared)
    finally:
        if prepared.socket_dir:
            shutil.rmtree(prepared.socket_dir, ignore_errors=True)
        if share is not None:
            release_database(Path(prepared.data_dir), share)


def prepare() -> tuple[int, Prepared | None, int | None]:
    """Run the preparation in a process of its own.

    Return the exit code, the result (None where it failed; it has said why) and the descriptor that
    makes this process a user of the embedded PostgreSQL.
    """
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "memoryproject.launch_preparation", str(theirs.fileno())]
    child = subprocess.Popen(command, pass_fds=[theirs.fileno()])  # noqa: S603
    theirs.close()
    # `kill` reaches only this process, Ctrl-C the whole group.
    for number in KILLING:
        signal.signal(number, lambda *_: child.terminate())
    try:
        with ours:
            message, descriptors, _, _ = socket.recv_fds(ours, MAX_MESSAGE_BYTES, 1)
    finally:
        code = child.wait()
        for number in KILLING:
            signal.signal(number, signal.SIG_DFL)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if not message:
        return code if code > 0 else SIGNALLED - code, None, None
    return 0, Prepared(**json.loads(message)), descriptors[0] if descriptors else None


def release_database(data_dir: Path, share: int) -> None:
    """Stop the embedded PostgreSQL as its last user: web server and workers have ended by now."""
    from memoryproject.foundation.embedded_postgres import embedded_postgres  # noqa: PLC0415 not while the server runs

    server = embedded_postgres(data_dir)
    server.adopt(share)
    server.release()


def supervise(prepared: Prepared) -> int:
    """Run supervisor until it ends."""
    command = [sys.executable, "-W", "ignore", "-m", "supervisor.supervisord"]
    command += ["-c", prepared.supervisor_conf]
    supervisor = subprocess.Popen(command, umask=0o077)  # noqa: S603
    # Ctrl-C reaches the whole group, `kill` only this process: supervisor stops either way.
    for number in (signal.SIGINT, *KILLING):
        signal.signal(number, lambda *_: supervisor.terminate())
    announce(prepared, supervisor)
    supervisor.wait()
    return 0


def announce(prepared: Prepared, supervisor: subprocess.Popen[bytes]) -> None:
    """Print the addresses once the server is ready."""
    url = f"http://127.0.0.1:{prepared.port}/"
    logs = prepared.log_dir
    for _ in range(READY_WITHIN_SECONDS * 2):
        if supervisor.poll() is not None:
            return
        if is_ready(prepared.port):
            say(f"\nReady: {url} (admin: {url}admin/). Stop with Ctrl-C.\nLogs: {logs}\n")
            return
        time.sleep(0.5)
    say(f"\nNot ready yet: see {url}readyz for what is missing, and the logs in {logs}.\n")


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
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
