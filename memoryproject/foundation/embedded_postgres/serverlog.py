"""The server's own log, ``DATA_DIR/postgres.log``: kept small, and quoted in errors."""

from __future__ import annotations

from pathlib import Path

from memoryproject.foundation.embedded_postgres.errors import explained

_MAX_SIZE = 5_000_000
_KEPT = 200_000
_QUOTED_LINES = 10


def trim_log(path: Path) -> None:
    """Cut a log that grew too large down to its end. Safe while the server writes: it appends.

    Looked at whenever a process first uses the server, so it needs no process of its own as
    PostgreSQL's collector does, and holds what fails before that collector would be up.
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
    """The last lines of the log, of those written after byte ``since``, each indented."""
    try:
        with path.open("rb") as log:
            log.seek(since)
            text = log.read(_MAX_SIZE).decode(errors="replace")
    except OSError as error:
        return f"  (unreadable: {error.strerror})"
    lines = text.splitlines()[-_QUOTED_LINES:]
    return "\n".join(f"  {line}" for line in lines) or "  (it says nothing)"
