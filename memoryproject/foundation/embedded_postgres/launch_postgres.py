"""Start a server on a cluster, and wait until it accepts connections."""

from __future__ import annotations

import subprocess
import time

import psutil
from psycopg import pq
from psycopg.conninfo import make_conninfo

from memoryproject.foundation.embedded_postgres.binaries import postgres_program
from memoryproject.foundation.embedded_postgres.cluster import ensure_cluster, server_environment
from memoryproject.foundation.embedded_postgres.errors import OWN_SERVER, EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.folders import make_server_file, make_server_folder
from memoryproject.foundation.embedded_postgres.places import PORT, Places
from memoryproject.foundation.embedded_postgres.processes import (
    clear_dead_server,
    is_alive,
    postmaster_of,
)
from memoryproject.foundation.embedded_postgres.serverlog import log_tail
from memoryproject.foundation.embedded_postgres.system_accounts import ServerAccount

_POLL_SECONDS = 0.02
# Long enough for a recovery after a crash under full load.
_START_SECONDS = 180
# The shell exits at once and leaves the server to init: no starter stays its parent, so a dead
# server never lingers as an uncollected child. (pg_ctl does the same, but pastes the paths into a
# shell command unquoted.)
_IN_BACKGROUND = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


def answers(places: Places) -> bool:
    """Return whether a server accepts connections on the socket of these places."""
    address = make_conninfo(host=str(places.socket_dir), port=PORT, connect_timeout=5)
    return pq.PGconn.ping(address.encode()) == pq.Ping.OK


def start_server(places: Places, account: ServerAccount) -> None:
    """Start the server on its cluster, which is built first if needed. Call under the start lock.

    Raises EmbeddedPostgresError with the end of the server's log when it doesn't start.
    """
    ensure_cluster(places, account)
    make_server_folder(places.socket_dir, account)
    make_server_file(places.log, account)
    logged_before = places.log.stat().st_size
    while (process := clear_dead_server(places)) is not None:
        # The process that started it was killed, or the server is just shutting down.
        if _comes_up(process, places):
            return
    if not _comes_up(_launch(places, account), places):
        raise _failed(places, "PostgreSQL did not start", since=logged_before)


def _comes_up(process: psutil.Process, places: Places) -> bool:
    """Wait until the server accepts connections (True) or its process has ended (False)."""
    deadline = time.monotonic() + _START_SECONDS
    while not answers(places):
        # If two were started at once, after a kill, the other one owns the cluster.
        if not is_alive(process) and postmaster_of(places) is None:
            return False
        if time.monotonic() > deadline:
            raise _failed(places, f"PostgreSQL (process {process.pid}) is still not ready")
        time.sleep(_POLL_SECONDS)
    return True


def _launch(places: Places, account: ServerAccount) -> psutil.Process:
    options = [word for item in _options(places).items() for word in ("-c", "=".join(item))]
    command = account.command(postgres_program("postgres"), "-D", str(places.cluster), *options)
    # The server gets its own session: Ctrl-C in the terminal is for us, not for the server.
    shell = subprocess.run(
        ["/bin/sh", "-c", _IN_BACKGROUND, str(places.log), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env=server_environment(),
        start_new_session=True,
        check=False,
    )
    try:
        return psutil.Process(int(shell.stdout))
    except ValueError:
        raise EmbeddedPostgresError(f"Can't start PostgreSQL: {shell.stdout.strip()}") from None
    except psutil.NoSuchProcess:
        raise _failed(places, "PostgreSQL ended at once") from None


def _options(places: Places) -> dict[str, str]:
    return {
        "listen_addresses": "",
        "unix_socket_directories": str(places.socket_dir),
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        "cluster_name": places.tag,
        "logging_collector": "off",
        "log_destination": "stderr",
        # Texts that people wrote must not get into this log, which forgetting can't reach: failing
        # statements and their values go to the program that sent them, not here.
        "log_min_messages": "log",
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
        # An old file of the write-ahead log is removed, not kept to be overwritten later: it may
        # hold data that has been forgotten since.
        "wal_recycle": "off",
    }


def _failed(places: Places, what: str, *, since: int = 0) -> EmbeddedPostgresError:
    return EmbeddedPostgresError(
        f"{what} on {places.cluster}. Its log {places.log} ends with:\n"
        f"{log_tail(places.log, since=since)}\n"
        f"Mend what it names (a full disk, a changed file) and start again, {OWN_SERVER}."
    )
