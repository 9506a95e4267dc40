"""kill -9 of the worker that forgets: another one goes on, and each thing has one receipt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.processes.stage import Stage
from tests.processes.waiting import wait_until

pytestmark = pytest.mark.processes

DRAFT = """
from memories_app.facts.validation import NewMemory
from memories_app.store.remember import memory_remember
from sessions_app.embedding.choice import embedder as build_embedder
from sessions_app.forgetting.runs import run_draft
facts = {facts!r}
embedder = build_embedder()
news = [NewMemory(content=fact, visibility="owner") for fact in facts]
memories = [memory_remember(new, embedder=embedder) for new in news]
run = run_draft(chosen=[("memory", each.memory.pk) for each in memories], asked_by="dana")
print(run.pk)
"""
CONFIRM = """
from memoryproject.foundation.audit.audit_events import Actor
from sessions_app.forgetting.dependencies import enqueue_forgetting
from sessions_app.forgetting.runs import run_confirm
actor = Actor("staff", name="dana")
for _ in range(2):
    run_confirm(run_id="{run}", actor=actor, enqueue=enqueue_forgetting)
"""
WAITING = """
SELECT 1 AS yes FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND state = 'active' AND query ILIKE '%%memories_app_memory%%'
"""


def shell(live: Stage, script: str) -> str:
    return live.installation.manage("shell", "-v", "0", "-c", script).strip()


def drafted(live: Stage, name: str) -> tuple[str, list[str]]:
    """A run of three memories that share no words with each other."""
    facts = [
        f"{name} keeps the ladder under the northern stairs",
        f"{name} waters seven ferns on every second Monday",
        f"{name} owes the baker exactly forty small coins",
    ]
    return shell(live, DRAFT.format(facts=facts)).splitlines()[-1], facts


def run_of(live: Stage, run: str) -> dict[str, Any]:
    (row,) = live.database.rows("SELECT * FROM sessions_app_forgetrun WHERE run_id = %s", run)
    return row


def kill_worker_of(live: Stage, run: str) -> None:
    owner = wait_until(lambda: run_of(live, run)["lease_owner"], "a worker has the run")
    live.installation.kill_owner(owner)


def finished(live: Stage, run: str) -> dict[str, Any]:
    live.wait_with_sweeps(lambda: run_of(live, run)["state"] == "done", "the run is over")
    return run_of(live, run)


def assert_each_once(live: Stage, run: str, facts: list[str]) -> None:
    items = live.database.rows(
        "SELECT item.object_id, item.state, item.receipt_id,"
        " (SELECT count(*) FROM sessions_app_forgetreceipt r WHERE r.object_id = item.object_id)"
        " AS receipts FROM sessions_app_forgetitem item WHERE run_id = %s ORDER BY number",
        run,
    )
    assert [item["state"] for item in items] == ["forgotten"] * 3
    assert [item["receipts"] for item in items] == [1] * 3
    for fact in facts:
        assert live.database.tables_with(fact) == []
    audited = live.database.rows(
        "SELECT details FROM audit_auditevent WHERE action = 'forget.confirm' AND object_id = %s",
        run,
    )
    assert [json.dumps(row["details"]) for row in audited] == ['{"things": 3}']


def test_killed_within_the_transaction_of_a_thing(live: Stage) -> None:
    run, facts = drafted(live, "Bertram")
    with live.database.locked("memories_app_memory", "content", facts[1]):
        shell(live, CONFIRM.format(run=run))
        wait_until(lambda: live.database.rows(WAITING), "the second one is being deleted")
        assert run_of(live, run)["done"] == 1
        kill_worker_of(live, run)
    wait_until(lambda: not live.database.rows(WAITING), "PostgreSQL has given it up")

    over = finished(live, run)
    assert (over["done"], over["failed"]) == (3, 0)
    assert_each_once(live, run, facts)


def test_all_workers_killed_and_started_again(live: Stage) -> None:
    run, facts = drafted(live, "Cornelius")
    with live.database.locked("memories_app_memory", "content", facts[2]):
        shell(live, CONFIRM.format(run=run))
        wait_until(lambda: live.database.rows(WAITING), "the third one is being deleted")
        assert run_of(live, run)["done"] == 2
        live.installation.kill_workers()
    wait_until(lambda: not live.database.rows(WAITING), "PostgreSQL has given it up")
    live.installation.start_workers()
    live.installation.wait_until_ready()

    assert finished(live, run)["done"] == 3
    assert_each_once(live, run, facts)
