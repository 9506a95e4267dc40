"""The server's processes, told apart from strangers that were given the same process id."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from memoryproject.foundation.embedded_postgres.errors import EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.places import PORT, Places

_POLL_SECONDS = 0.02
_ORPHANS_LEAVE_SECONDS = 5
_STOP_SECONDS = 120


def postmaster_of(places: Places) -> psutil.Process | None:
    """The running server of a DATA_DIR, whether it answers yet or not; None if there is none."""
    process = _recorded_process(places.cluster / "postmaster.pid")
    return process if process is not None and _is_ours(process, places) else None


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs; one that is dead but not yet collected by its parent isn't."""
    try:
        return bool(process.is_running()) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop_postmaster(postmaster: psutil.Process, log: Path) -> None:
    """Stop a server in PostgreSQL's fast way: cut its connections, write everything, exit.

    Raises EmbeddedPostgresError when it takes too long.
    """
    try:
        postmaster.send_signal(signal.SIGINT)
    except psutil.NoSuchProcess:
        return
    if not _wait_until_gone(postmaster, _STOP_SECONDS):
        raise EmbeddedPostgresError(
            f"PostgreSQL (process {postmaster.pid}) is still stopping after {_STOP_SECONDS} "
            f"seconds. Its log {log} says why; its data is safe."
        )


def clear_dead_server(places: Places) -> psutil.Process | None:
    """Make way for a new server where there is none, or return the one that there is.

    Processes of a server that was killed may outlive it with its shared memory in their hands:
    they are waited for, then told to quit (nothing committed is lost). Raises
    EmbeddedPostgresError when they don't go.
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
                raise _stuck(orphans, places.cluster)
            deadlines.pop(0)
            _tell_to_quit(orphans)
        time.sleep(_POLL_SECONDS)
    return postmaster


def _stuck(orphans: list[psutil.Process], cluster: Path) -> EmbeddedPostgresError:
    pids = " ".join(str(process.pid) for process in orphans)
    return EmbeddedPostgresError(
        f"Processes of a PostgreSQL server that was killed still use {cluster}. End them "
        f"(kill -9 {pids}), then start again."
    )


def _tell_to_quit(orphans: list[psutil.Process]) -> None:
    for process in orphans:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGQUIT)


def _remove_if_misleading(lock_file: Path) -> None:
    # PostgreSQL takes its lock file for valid when any process has the recorded id, and refuses to
    # start; with an id that nobody has, it clears up by itself and more carefully than we could.
    # An empty file, left by a full disk, stops it too.
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
    # Told by the command line, which anybody may read: root in a container may not see the
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


def _wait_until_gone(process: psutil.Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
