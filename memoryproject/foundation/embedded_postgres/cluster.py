"""Build the cluster (the folder with all data) once, completely or not at all, and check it."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from memoryproject.foundation.embedded_postgres.binaries import POSTGRES_MAJOR, postgres_program
from memoryproject.foundation.embedded_postgres.errors import (
    OWN_SERVER,
    EmbeddedPostgresError,
    explained,
)
from memoryproject.foundation.embedded_postgres.folders import PRIVATE_FILE, make_server_folder
from memoryproject.foundation.embedded_postgres.places import Places
from memoryproject.foundation.embedded_postgres.system_accounts import ServerAccount

ROLE = "memory"
_UNFINISHED = "postgres.new-"
# The collation is PostgreSQL's own and the same on every machine. But its full-text parser asks the
# system which characters are letters, and under plain C it treats "₪5000" and a quoted word as
# single words.
_CHARACTER_TYPES = ("C.UTF-8", "C")
# Written into the cluster's postgresql.conf, where the owner of a larger machine may change them.
_TUNING = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "work_mem": "8MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
    # A preview of a forgetting leaves as many dead rows as the forgetting would delete. In a table
    # of a million rows, a fifth is too many to wait for.
    "autovacuum_vacuum_scale_factor": "0.05",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def ensure_cluster(places: Places, account: ServerAccount) -> None:
    """Build the cluster if there is none, or check the existing one. Call under the start lock.

    Raises EmbeddedPostgresError when it can't be built or is of another PostgreSQL version.
    """
    _remove_unfinished(places.data_dir)
    if not places.cluster.exists():
        _ensure_password(places.password)
        _build(places, account)
    _check(places)


def server_environment() -> dict[str, str]:
    """Return the environment for the server's programs: no secrets of ours, no PG* variables."""
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
    return {"LC_ALL": "C", **{name: os.environ[name] for name in kept if name in os.environ}}


def _build(places: Places, account: ServerAccount) -> None:
    # The name is new each time: the programs of a start that was killed may still be writing.
    unfinished = places.data_dir / f"{_UNFINISHED}{secrets.token_hex(4)}"
    for ctype in _CHARACTER_TYPES:
        make_server_folder(unfinished, account)
        result = _initdb(unfinished, places.password, account, ctype)
        if result.returncode == 0 or "locale" not in result.stderr:
            break
    if result.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise EmbeddedPostgresError(
            f"Can't make the database in {places.cluster}. PostgreSQL's initdb says: "
            f"{result.stderr.strip()[-1500:]} Mend that, choose another DATA_DIR, {OWN_SERVER}."
        )
    with explained(f"put the new database in place as {places.cluster}"):
        unfinished.rename(places.cluster)
        _sync_folder(places.data_dir)


def _initdb(
    folder: Path, password: Path, account: ServerAccount, ctype: str
) -> subprocess.CompletedProcess[str]:
    tuning = [word for item in _TUNING.items() for word in ("-c", "=".join(item))]
    command = account.command(
        postgres_program("initdb"),
        f"--pgdata={folder}",
        f"--username={ROLE}",
        f"--pwfile={password}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        f"--lc-ctype={ctype}",
        "--data-checksums",
        *tuning,
    )
    return subprocess.run(
        command, capture_output=True, text=True, cwd="/", env=server_environment(), check=False
    )


def _check(places: Places) -> None:
    with explained(f"read {places.cluster}"):
        version_file = places.cluster / "PG_VERSION"
        version = version_file.read_text().strip() if version_file.exists() else None
    if version is None:
        raise EmbeddedPostgresError(
            f"{places.cluster} is not a PostgreSQL cluster (it has no PG_VERSION). Move it away to "
            "start with an empty database, or put your backup of DATA_DIR in its place."
        )
    if version != str(POSTGRES_MAJOR):
        raise EmbeddedPostgresError(
            f"{places.cluster} was made by PostgreSQL {version}, and the installed one is "
            f"{POSTGRES_MAJOR}, which can't open it. Export it with the release that made it, or "
            f"install that release's requirements.txt, or choose another DATA_DIR, {OWN_SERVER}."
        )
    if not places.password.exists():
        raise EmbeddedPostgresError(
            f"{places.password}, the password of the database in {places.cluster}, is missing. "
            "Put it back from a backup of DATA_DIR; every copy since the first start has it."
        )


def _ensure_password(path: Path) -> None:
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}.new")
    with explained(f"write {path}"):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(unfinished, flags, PRIVATE_FILE), "w") as file:
            file.write(secrets.token_urlsafe(32))
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)


def _remove_unfinished(data_dir: Path) -> None:
    for leftover in data_dir.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
