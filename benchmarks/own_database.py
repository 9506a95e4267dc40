"""A database of a benchmark's own. Import this before anything of Django's or of the project's:
it sets up Django with a temporary folder, where the server that ``own_database`` starts has its
data. The folder goes at the end, unless the command line names one with ``--keep``."""

from __future__ import annotations

import argparse
import atexit
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
# For the benchmarks that can use what an earlier run filled: a parent of their own parser.
KEEPING = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
KEEPING.add_argument(
    "--keep", type=Path, metavar="DIR", help="have the database there, keep it, and use it again"
)
KEPT: Path | None = KEEPING.parse_known_args()[0].keep
FOLDER = KEPT.resolve() if KEPT else Path(tempfile.mkdtemp(prefix="memory-benchmark-"))
if KEPT is None:
    atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
os.environ |= {
    "DATA_DIR": str(FOLDER / "data"),
    "LOG_DIR": str(FOLDER / "logs"),
    "DATABASE_URL": "",
    "ENABLE_MEMORY_SYSTEM": "true",
    "TURN_DEBOUNCE_SECONDS": "0",
    "CLIENT_MESSAGES_PER_HOUR": "0",
    "CLIENT_TOKENS_PER_DAY": "0",
    "GODFATHER_PHONE": "15550199999@c.us",
    "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
}

import django  # noqa: E402 the settings read the environment

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402

from memoryproject.foundation.embedded_postgres import embedded_postgres  # noqa: E402
from tests.processes.installation import SHARED_FOLDER, copy_cluster, migrated_data_dir  # noqa: E402


@contextmanager
def own_database() -> Iterator[None]:
    """While the block runs there is a database: an empty one, or the kept one as it was."""
    try:
        if SHARED_FOLDER in os.environ:
            # The tests of benchmarks have made the tables already.
            copy_cluster(migrated_data_dir(), FOLDER / "data")
        call_command("migrate", verbosity=0)
        yield
    finally:
        connections.close_all()
        embedded_postgres(FOLDER / "data").release()


def machine() -> str:
    """Return the machine and the database, for a benchmark's first line."""
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, PostgreSQL {connection.pg_version // 10_000} on the same "
        f"machine, load {os.getloadavg()[0]:.1f}"
    )
