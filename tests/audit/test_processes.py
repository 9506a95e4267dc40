"""Processes that record and seal at once, and sealers that are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.database import Database
from tests.processes.installation import Begun, Installation, kill, prepared
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

RECORDERS = 8
EVENTS = 60
# A transaction that waits at its end, after the lines are in the file.
HOLD = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END $$;
CREATE TRIGGER hold BEFORE UPDATE ON audit_auditevent FOR EACH ROW EXECUTE FUNCTION hold();
"""
LET_GO = "DROP TRIGGER hold ON audit_auditevent; DROP FUNCTION hold();"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Tables and a running PostgreSQL, nothing else."""
    with prepared(tmp_path_factory.mktemp("audit")) as made:
        yield made


@pytest.fixture
def database(installation: Installation) -> Database:
    return Database(installation.data_dir)


def start(installation: Installation, *arguments: str) -> Begun:
    return installation.begin("-m", "tests.audit.recorder", *arguments)


def done(process: Begun) -> int:
    ended = process.end()
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


def verified(installation: Installation) -> dict[str, object]:
    report: dict[str, object] = json.loads(installation.manage("audit_verify", "--json"))
    assert report["verified"]
    assert report["repeated_lines"] == 0
    return report


def log_lines(installation: Installation) -> list[bytes]:
    """None before the first event was sealed."""
    path = installation.folder / "logs" / "memory_audit.log"
    return path.read_bytes().splitlines() if path.exists() else []


def test_each_event_is_sealed_once_whoever_seals(
    installation: Installation, database: Database, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    sealers = [start(installation, "seal", str(stop)) for _ in range(2)]
    names = [f"r{number}" for number in range(RECORDERS)]
    recorders = start(installation, "record", str(EVENTS), *names)
    assert done(recorders) == EVENTS * RECORDERS
    stop.touch()
    sealed = sum(done(process) for process in sealers)
    report = verified(installation)
    recorded = database.rows("SELECT count(*) AS n FROM audit_auditevent")[0]["n"]
    assert report["events"] == recorded == report["last"]
    assert recorded >= EVENTS * RECORDERS
    assert sealed <= recorded
    seqs = [json.loads(line)["seq"] for line in log_lines(installation)]
    assert seqs == list(range(1, recorded + 1))


@pytest.mark.parametrize("later", [0, 3])
def test_a_sealer_killed_between_file_and_commit_leaves_a_log_that_verifies(
    installation: Installation, database: Database, later: int, tmp_path: Path
) -> None:
    verified(installation)
    before = len(log_lines(installation))
    done(start(installation, "record", "5", "killed"))
    with database.connect() as holder:
        # The lock at which the sealer's transaction waits.
        holder.execute("SELECT pg_advisory_lock(77)")
        database.rows(HOLD)
        sealer = start(installation, "seal", str(tmp_path / "never"))
        wait_until(lambda: len(log_lines(installation)) == before + 5, "the lines are written")
        kill([sealer.process])
        assert waiting(database) == 5, "not committed"
    wait_until(lambda: not stuck(database), "PostgreSQL has noticed")
    database.rows(LET_GO)
    written = log_lines(installation)
    if later:
        done(start(installation, "record", str(later), "later"))
    report = verified(installation)
    assert report["events"] == before + 5 + later
    assert log_lines(installation)[: before + 5] == written


def waiting(database: Database) -> int:
    found = database.rows("SELECT count(*) AS n FROM audit_auditevent WHERE seq IS NULL")
    return int(found[0]["n"])


def stuck(database: Database) -> bool:
    return bool(database.rows("SELECT 1 AS yes FROM pg_locks WHERE locktype = 'advisory'"))
