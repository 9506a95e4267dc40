"""The database's own: versions, the audit log, writers at the same moment, counts of queries."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories_app.memory_document_format.envelope import envelope_read
from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.memory_documents.document_rows import documents_remove
from memories_app.memory_documents.store import Filter, Kept, Key
from memories_app.models import MemoryDocument, MemoryDocumentVersion
from memoryproject.foundation.audit.audit_events import COMMAND_LINE, Actor
from memoryproject.foundation.audit.models import AuditEvent
from tests.memory_documents.conftest import NOON, Place
from tests.threads import at_once, in_threads
from tests.unit.memory_documents.examples import document


def kept(category: str, name: str, **content: Any) -> Kept:
    text = json.dumps(document(category, content=content))
    return Kept(Key(category, name), envelope_read(text))


def test_every_version_stays_with_who_saved_it(database: Place) -> None:
    texts = []
    for number, who in enumerate(("dana", "yossi", "dana")):
        store = DatabaseStore(actor=Actor("api", who), now=lambda: NOON)
        saved = store.save(
            category="interfaces", identifier="auth", content={"module": f"v{number}"}
        )
        texts.append(saved.envelope.text)
    store.save(category="interfaces", identifier="auth", content={"module": "v2"})
    row = MemoryDocument.objects.get()
    assert row.version == 3
    versions = list(row.versions.order_by("number"))
    assert [version.body for version in versions] == texts
    assert [version.saved_by_name for version in versions] == ["dana", "yossi", "dana"]
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert [version.sha256 for version in versions] == hashes


def test_writes_are_audited_without_names_and_contents(database: Place) -> None:
    database.save("handoffs", "secret-name", task="secret text")
    database.save("handoffs", "secret-name", task="secret text 2")
    database.save("handoffs", "secret-name", task="secret text 2")
    database.run("archive", "--category", "handoffs", "--identifier", "secret-name")
    database.save("context", "secret-name", days_ago=8, notes="secret")
    database.store.cleanup(category="context", older_than=timedelta(days=7))
    database.store.put([kept("decisions", "secret-name", decision="secret")])
    list(database.store.walk())
    events = list(AuditEvent.objects.order_by("id"))
    assert [(event.action, event.details) for event in events] == [
        ("memory_document.save", {"category": "handoffs", "version": 1}),
        ("memory_document.save", {"category": "handoffs", "version": 2}),
        ("memory_document.archive", {"category": "handoffs"}),
        ("memory_document.save", {"category": "context", "version": 1}),
        ("memory_document.remove", {"category": "context"}),
        ("memory_document.import", {"category": "decisions", "version": 1}),
        ("export", {"documents": 2}),
    ]
    assert {event.actor_kind for event in events} == {"command"}
    assert events[0].object_id == str(MemoryDocument.objects.get(category="handoffs").pk)
    assert events[1].content_hash == MemoryDocumentVersion.objects.get(number=2).sha256
    assert "secret" not in str(AuditEvent.objects.values_list())


def test_a_cleanup_takes_the_history_along(database: Place) -> None:
    database.save("context", "x", days_ago=8, notes="one")
    database.save("context", "2025-11-17-x", days_ago=7.9, notes="two")
    assert MemoryDocumentVersion.objects.count() == 2
    database.store.cleanup(category="context", older_than=timedelta(days=7))
    assert not MemoryDocument.objects.exists()
    assert not MemoryDocumentVersion.objects.exists()


def test_staff_remove_a_document_with_its_history_archived_or_not(database: Place) -> None:
    database.save("handoffs", "one", task="a")
    database.save("handoffs", "one", task="b")
    database.run("archive", "--category", "handoffs", "--identifier", "one")
    ids = list(MemoryDocument.objects.values_list("pk", flat=True))
    assert documents_remove(ids=ids, actor=Actor("staff", "dana")) == 1
    assert documents_remove(ids=ids, actor=Actor("staff", "dana")) == 0
    assert not MemoryDocumentVersion.objects.exists()


def test_what_is_refused_changes_nothing(database: Place) -> None:
    database.save("context", "x", notes="one")
    before = list(MemoryDocumentVersion.objects.values())
    events = AuditEvent.objects.count()
    with pytest.raises(ValueError, match=r"content\.notes"):
        database.store.save(category="context", identifier="x", content={"notes": 5})
    assert list(MemoryDocumentVersion.objects.values()) == before
    assert AuditEvent.objects.count() == events


def test_lists_cleanups_and_exports_take_few_queries(database: Place) -> None:
    database.store.put([kept("decisions", f"d{number}") for number in range(1_200)])
    with CaptureQueriesContext(connection) as captured:
        assert len(list(database.store.find(Filter(categories=["decisions"])))) == 1_200
    assert len(captured) == 1
    with CaptureQueriesContext(connection) as captured:
        assert len(list(database.store.walk())) == 1_200
    assert len(captured) <= 14
    with CaptureQueriesContext(connection) as captured:
        removed = database.store.cleanup(category="decisions", older_than=timedelta())
    assert len(removed.names) == 1_200
    # Three batches, and the look that finds nothing more.
    assert len(captured) <= 4 * 12


@pytest.mark.django_db(transaction=True)
def test_saves_at_the_same_moment_keep_every_version() -> None:
    store = DatabaseStore(actor=COMMAND_LINE)

    def save(number: int) -> None:
        store.save(category="interfaces", identifier="auth", content={"module": str(number)})

    at_once(*(partial(save, number) for number in range(8)))
    row = MemoryDocument.objects.get()
    assert row.version == 8
    modules = [json.loads(each.body)["content"]["module"] for each in row.versions.all()]
    assert sorted(modules) == [str(number) for number in range(8)]


@pytest.mark.django_db(transaction=True)
def test_archiving_at_the_same_moment_loses_nothing() -> None:
    store = DatabaseStore(actor=COMMAND_LINE)

    def complete(number: int) -> None:
        content = {"progress": "100%", "task": str(number)}
        store.save(category="handoffs", identifier="task", content=content)

    at_once(*(partial(complete, number) for number in range(6)))
    archived = {each.key.name for each in store.find(Filter(archived=True))}  # type: ignore[union-attr]
    assert archived == {"task", *(f"task.{number}" for number in range(2, 7))}


@pytest.mark.django_db(transaction=True)
def test_the_same_import_twice_at_the_same_moment_brings_each_in_once() -> None:
    store = DatabaseStore(actor=COMMAND_LINE)
    documents = [kept("decisions", f"d{number}") for number in range(50)]
    first, second = in_threads(lambda: list(store.put(documents)), 2)
    outcomes = [each.outcome for each in (*first, *second)]
    assert sorted(outcomes) == ["created"] * 50 + ["unchanged"] * 50
    assert MemoryDocument.objects.count() == 50
