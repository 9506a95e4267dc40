"""Real servers in folders of their own, and other processes that use them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.cluster import ServerAccount, server_account
from memoryproject.foundation.embedded_postgres.places import is_alive, postmaster_of

REPOSITORY = Path(__file__).resolve().parents[2]

# A program that uses the server as a process of ours does, says who the server is, and stays until
# its standard input is closed.
USER_PROGRAM = """
import sys
from pathlib import Path
from memoryproject.foundation.embedded_postgres import EmbeddedPostgres
from memoryproject.foundation.embedded_postgres.places import postmaster_of
server = EmbeddedPostgres(Path(sys.argv[1]))
server.ensure_running()
print(postmaster_of(server.places).pid, flush=True)
sys.stdin.read()
"""


def start_python(
    program: str, *arguments: str | Path, account: ServerAccount | None = None
) -> subprocess.Popen[str]:
    """Run a Python program in a process of its own, as another account where one is given."""
    python = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(
        [*(account.prefix if account else ()), *python],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a program prints, waited for; empty when it ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def send_line(process: subprocess.Popen[str]) -> None:
    """Let a program that waits for a line go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def start_user(data_dir: Path) -> subprocess.Popen[str]:
    """Another process that uses the server, up when this returns; it stays until it is ended."""
    process = start_python(USER_PROGRAM, data_dir)
    assert line_of(process).isdigit()
    return process


def run_python(
    program: str, *arguments: str | Path, account: ServerAccount | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end."""
    process = start_python(program, *arguments, account=account)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def connect(server: EmbeddedPostgres, **options: Any) -> psycopg.Connection[Any]:
    """Log in to the server's database, in autocommit."""
    settings: dict[str, Any] = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "dbname": server.database,
        "autocommit": True,
    }
    return psycopg.connect(**{**settings, **options})


def postmaster(server: EmbeddedPostgres) -> psutil.Process:
    """The running server's main process."""
    process = postmaster_of(server.places)
    assert process is not None, "the server is not running"
    return process


def kill_all(server: EmbeddedPostgres) -> None:
    """kill -9 of the server and all its processes, as a power cut would."""
    process = postmaster(server)
    family = [process, *process.children(recursive=True)]
    process.suspend()
    for member in family:
        # A helper process of the server may have ended by itself since.
        with suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)
    wait_for(lambda: not any(is_alive(member) for member in family))


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for something another process does; fails the test if it never does."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def as_server_account(program: str, *arguments: str) -> list[str]:
    """A command run as the account that the server has here."""
    return server_account().command(Path(program), *arguments)
