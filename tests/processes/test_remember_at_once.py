"""Twenty processes that remember the same at the same moment."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.command_server import REPOSITORY
from tests.processes.database import Database
from tests.processes.installation import Installation, prepared

pytestmark = pytest.mark.processes

PROCESSES = 20
FACT = "TestCorp owes me ₪5000"
SPELLINGS = (FACT, "testcorp owes me 5,000 ₪.", "TestCorp owes me 5000 shekels")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder: Path = tmp_path_factory.mktemp("at-once")
    with prepared(folder / "it", ENABLE_MEMORY_SYSTEM="true") as made:
        yield made


def at_once(installation: Installation, facts: list[list[str]]) -> list[list[str]]:
    """What a process for each list of facts tells, all let go at one moment."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.processes.rememberer", json.dumps(facts)],
        cwd=REPOSITORY,
        env=installation.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: list[list[str]] = json.loads(done.stdout)
    return told


def test_twenty_processes_at_the_same_facts(installation: Installation) -> None:
    """One fact, however it is spelled, is one memory; of twenty prices the last one counts."""
    told = at_once(
        installation,
        [
            [SPELLINGS[number % len(SPELLINGS)], f"The price is {40 + number}"]
            for number in range(PROCESSES)
        ],
    )
    database = Database(installation.data_dir)
    (memory,) = database.rows("SELECT * FROM memories_app_memory WHERE content ILIKE '%%corp%%'")
    assert memory["told_count"] == PROCESSES
    assert Counter(status for status, _ in told) == {"created": 1, "duplicate": PROCESSES - 1}
    tellings = database.rows(
        "SELECT DISTINCT source_message_id FROM memories_app_memorytelling WHERE memory_id = %s",
        memory["memory_id"],
    )
    assert len(tellings) == PROCESSES

    prices = database.rows("SELECT * FROM memories_app_memory WHERE content LIKE 'The price%%'")
    assert Counter(row["status"] for row in prices) == {"active": 1, "superseded": PROCESSES - 1}
    assert all(row["superseded_by_id"] for row in prices if row["status"] == "superseded")
    assert len(database.rows("SELECT * FROM memories_app_memoryembedding")) == 1 + PROCESSES
    log = (installation.data_dir / "postgres.log").read_text(encoding="utf-8")
    assert "deadlock detected" not in log
