"""The server's own log, ``DATA_DIR/postgres.log``: limited in size, and quoted in errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


# The error of the embedded server. Its text is for the person who runs the server.


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL can't be used. The text states the cause, place and remedy."""


OWN_SERVER = "or set DATABASE_URL to a PostgreSQL server of your own"


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
