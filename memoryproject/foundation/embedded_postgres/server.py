"""The embedded PostgreSQL of one DATA_DIR, as one of our processes uses it.

The first process that needs the server starts it, and the last one that releases it stops it. Two
file locks track this: the start lock lets one process at a time start or stop the server, and every
process shares the users lock while it uses the server. The kernel releases both when a process
dies, for any reason.
"""

import fcntl
import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import psutil
import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

from memoryproject.foundation.embedded_postgres import cluster
from memoryproject.foundation.embedded_postgres.places import (
    OWN_SERVER,
    PORT,
    EmbeddedPostgresError,
    Places,
    clear_dead_server,
    explained,
    is_alive,
    log_tail,
    postgres_program,
    postmaster_of,
    stop_postmaster,
    trim_log,
)

# Create the database inside the server, with the vector extension, when it is missing.

DATABASE: Final = "memory"


def provision(places: Places, password: str) -> None:
    """Create the database and its extension where they are missing. Call under the start lock.

    Raises EmbeddedPostgresError when the login fails or the server refuses.
    """
    try:
        with _connect(places, password, "postgres") as connection:
            there = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(there, [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")
        with _connect(places, password, DATABASE) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise EmbeddedPostgresError(
            f"PostgreSQL on {places.cluster} runs, but its database can't be used: "
            f"{str(error).strip()} Its log is {places.log}, its password {places.password}."
        ) from error


def _connect(places: Places, password: str, database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=str(places.socket_dir),
        port=PORT,
        user=cluster.ROLE,
        password=password,
        dbname=database,
        autocommit=True,
        connect_timeout=30,
    )


logger = logging.getLogger(__name__)

# After multiprocessing's own exit handlers, so that children that use the server have ended.
_EXIT_PRIORITY = -1000


class EmbeddedPostgres:
    """The server of one DATA_DIR. Creating an instance has no effect; thread- and fork-safe."""

    user = cluster.ROLE
    database = DATABASE
    port = PORT

    def __init__(self, data_dir: Path) -> None:
        self.places = Places(Path(data_dir))
        self._guard = threading.RLock()
        self._start_lock = FileLock(self.places.start_lock)
        self._users_lock = FileLock(self.places.users_lock)
        self._provisioned = False
        self._exit_hook: Finalize | None = None
        _instances.add(self)

    @property
    def host(self) -> str:
        """The folder of the server's socket, which is known before the server starts."""
        return str(self.places.socket_dir)

    @property
    def password(self) -> str:
        """The role's password; empty before the first start."""
        with explained(f"read {self.places.password}"):
            if not self.places.password.exists():
                return ""
            return self.places.password.read_text().strip()

    @property
    def is_held(self) -> bool:
        """Return whether this process counts as a user of the server."""
        return self._users_lock.held

    def connection_settings(self) -> dict[str, str | int]:
        """Return NAME, USER, HOST and PORT of a Django database. Starts nothing, writes nothing.

        PASSWORD is empty: the server's first start creates it, and the Django backend reads it
        then.
        """
        return {
            "NAME": self.database,
            "USER": self.user,
            "PASSWORD": "",
            "HOST": self.host,
            "PORT": self.port,
        }

    def is_running(self) -> bool:
        """Return whether the server accepts connections."""
        return os.path.exists(self.places.cluster) and answers(self.places)

    def ensure_running(self) -> None:
        """Start the server if it isn't running, and count this process as one of its users.

        Raises EmbeddedPostgresError when it can't be started.
        """
        with self._guard:
            if self.is_held and self._provisioned and self.is_running():
                return
            account = cluster.server_account()
            cluster.prepare_folders(self.places, account)
            self._users_lock.acquire_shared()
            if self._exit_hook is None:
                # Unlike atexit, this also runs at the end of a multiprocessing child, and only in
                # the process that registered it.
                self._exit_hook = Finalize(None, self._release_at_exit, exitpriority=_EXIT_PRIORITY)
            with self._start_lock.exclusive():
                trim_log(self.places.log)
                if not self.is_running():
                    start_server(self.places, account)
                provision(self.places, self.password)
            self._provisioned = True

    def release(self) -> None:
        """Release the server; if no other process uses it, stop it and wait for its end.

        Raises EmbeddedPostgresError when it doesn't stop.
        """
        with self._guard:
            if not self.places.data_dir.exists():
                # DATA_DIR was deleted while the server ran. The server notices that and stops by
                # itself.
                self._users_lock.release()
                return
            with self._start_lock.exclusive():
                self._users_lock.release()
                with self._users_lock.exclusive(wait=False) as taken:
                    postmaster = postmaster_of(self.places) if taken else None
                    if postmaster is not None:
                        stop_postmaster(postmaster, self.places.log)

    def _release_at_exit(self) -> None:
        try:
            self.release()
        except EmbeddedPostgresError as error:
            logger.warning("%s", error)

    def forget_parent(self) -> None:
        """Drop the parent's locks in a forked child, without unlocking them for the parent."""
        self._guard = threading.RLock()
        self._exit_hook = None
        self._start_lock.abandon()
        self._users_lock.abandon()


_instances: WeakSet[EmbeddedPostgres] = WeakSet()
_by_data_dir: dict[Path, EmbeddedPostgres] = {}


def embedded_postgres(data_dir: Path) -> EmbeddedPostgres:
    """Return this process's only instance for a DATA_DIR."""
    return _by_data_dir.setdefault(Path(data_dir).resolve(), EmbeddedPostgres(data_dir))


def _forget_parent() -> None:
    for server in list(_instances):
        server.forget_parent()


os.register_at_fork(after_in_child=_forget_parent)


# Locks between processes: a file lock that the kernel releases when its process dies.


class FileLock:
    """A flock on one file. Its owner must prevent use by two threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire_shared(self) -> None:
        """Wait for a share of the lock. Raises EmbeddedPostgresError if the file can't be made."""
        if self._descriptor is None:
            self._descriptor = self._locked(fcntl.LOCK_SH)

    @contextmanager
    def exclusive(self, *, wait: bool = True) -> Iterator[bool]:
        """Hold the exclusive lock during the block; yield whether it is held.

        ``wait``: until no process holds a share; otherwise it isn't taken while one does.
        """
        with suppress(BlockingIOError):
            self._descriptor = self._locked(fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        try:
            yield self.held
        finally:
            self.release()

    def release(self) -> None:
        """Release the lock, even where a forked child still has a copy of the descriptor."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self.abandon()

    def abandon(self) -> None:
        """Drop the lock without unlocking it: in a forked child, the lock is still the parent's."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _locked(self, operation: int) -> int:
        with explained(f"open the lock file {self._path}"):
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, operation)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


# Start a server on a cluster, and wait until it accepts connections.

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


def start_server(places: Places, account: cluster.ServerAccount) -> None:
    """Start the server on its cluster, which is built first if needed. Call under the start lock.

    Raises EmbeddedPostgresError with the end of the server's log when it doesn't start.
    """
    cluster.ensure_cluster(places, account)
    cluster.make_server_folder(places.socket_dir, account)
    cluster.make_server_file(places.log, account)
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


def _launch(places: Places, account: cluster.ServerAccount) -> psutil.Process:
    options = [word for item in _options(places).items() for word in ("-c", "=".join(item))]
    command = account.command(postgres_program("postgres"), "-D", str(places.cluster), *options)
    # The server gets its own session: Ctrl-C in the terminal is for us, not for the server.
    shell = subprocess.run(
        ["/bin/sh", "-c", _IN_BACKGROUND, str(places.log), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env=cluster.server_environment(),
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
