"""What becomes of documents by the clock: each category as the format recommends it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django_q.models import Schedule

from memories_app.models import MemoryDocumentVersion
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.schedules import schedules_install
from sessions_app.tasks import tend_memory_documents
from tests.memory_documents.conftest import Place
from tests.memory_documents.test_database import kept


@pytest.fixture
def database(database: Place) -> Place:
    database.now = datetime.now(timezone.utc)
    return database


def test_old_context_goes_with_its_history_and_all_else_stays(database: Place) -> None:
    for category in ("context", "decisions", "interfaces", "handoffs"):
        database.save(category, "old", days_ago=400)
        database.save(category, "new", days_ago=6.9)
    database.save("decisions", "superseded", days_ago=400, status="superseded")
    database.save("context", "kept", days_ago=100)
    database.run("archive", "--category", "context", "--identifier", "kept")
    assert tend_memory_documents() == {"removed": 1, "archived": 0}
    names = [path.split("/")[1].removesuffix(".json") for path in database.paths()]
    assert sorted(name.rpartition("-")[2] for name in names) == sorted(
        ["new"] * 4 + ["old"] * 3 + ["superseded"]
    )
    assert len(database.paths(archived=True)) == 1
    assert MemoryDocumentVersion.objects.count() == 9
    assert tend_memory_documents() == {"removed": 0, "archived": 0}
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor_kind) == ("memory_document.remove", "system")


def test_the_time_is_a_setting_and_0_is_never(database: Place, settings: Any) -> None:
    database.save("context", "old", days_ago=8)
    for days, removed in ((0, 0), (9, 0), (3, 1)):
        settings.MEMORY_DOCUMENTS_CONTEXT_DAYS = days
        assert tend_memory_documents()["removed"] == removed


def test_handoffs_that_came_in_completed_are_archived(database: Place) -> None:
    database.store.put(
        [
            kept("handoffs", "done", progress="100%", pending=[]),
            kept("handoffs", "left", progress="100%", pending=["x"]),
            kept("handoffs", "half", progress="50%"),
        ]
    )
    assert tend_memory_documents() == {"removed": 0, "archived": 1}
    assert database.paths() == ["handoffs/half.json", "handoffs/left.json"]
    assert database.paths(archived=True) == ["archive/handoffs/done.json"]


def test_context_that_was_saved_again_is_not_old(database: Place) -> None:
    name = database.save("context", "x", days_ago=30, notes="a")
    database.save("context", name, days_ago=1, notes="b")
    assert tend_memory_documents()["removed"] == 0
    database.now += timedelta(days=7)
    assert len(database.store.cleanup(category="context", older_than=timedelta(days=7)).names) == 1


def test_it_is_scheduled_each_hour(db: None) -> None:
    schedules_install()
    schedule = Schedule.objects.get(func="sessions_app.tasks.tend_memory_documents")
    assert schedule.minutes == 60
