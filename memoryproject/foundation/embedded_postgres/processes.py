"""Find and stop the server's processes, and don't confuse them with reused process ids."""

import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from memoryproject.foundation.embedded_postgres.places import PORT, EmbeddedPostgresError, Places

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
