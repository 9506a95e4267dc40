"""Remembering: each fact once, the newer before the older, all or nothing."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError
from django.utils import timezone as now_in
from hypothesis import given, strategies as st
from pytest_django import DjangoAssertNumQueries

from memories_app.embedding_models.vectors import due_vectors_make
from memories_app.facts.validation import NewMemory, storable_metadata
from memories_app.models import Memory, MemoryEmbedding, MemorySource, MergeProposal
from memories_app.store.deduplicate import Remembered
from memories_app.store.memory_fields import content_hash
from memories_app.store.remember import memories_remember
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.recall.facade import MEMORIES, Viewer, recall
from tests import remembering
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.threads import at_once

pytestmark = pytest.mark.django_db
CHAT, OTHER_CHAT = uuid.uuid4(), uuid.uuid4()
FACT = "TestCorp owes me ₪5000"


def remember(content: str, **changes: Any) -> Remembered:
    return remembering.remembered(content, **{"embedder": HashingEmbedder(), **changes})


def audited() -> list[str]:
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def recalled(query: str) -> list[str]:
    found = recall(
        query=query,
        viewer=Viewer(user_role="godfather"),
        embedder=HashingEmbedder(),
        sources=[MEMORIES],
        min_similarity=0.3,
    )
    return [hit.content for hit in found.hits]


@pytest.mark.parametrize("again", [FACT, "testcorp owes me ₪5000!", "TestCorp owes me 5,000 ₪."])
def test_a_fact_told_again_is_one_memory(again: str) -> None:
    first = remember(FACT, source="command", source_message_id=uuid.uuid4())
    second = remember(again, source="command", source_message_id=uuid.uuid4())

    assert (first.status, second.status) == ("created", "duplicate")
    memory = Memory.objects.get()
    assert second.memory == memory
    assert (memory.content, memory.told_count) == (FACT, 2)
    assert memory.last_told_at > memory.created_at
    assert memory.tellings.count() == 2
    assert MemoryEmbedding.objects.count() == 1
    assert audited() == ["memory.remember", "memory.reinforce"]


@pytest.mark.django_db(transaction=True)
def test_a_fact_told_by_many_at_once_is_one_memory() -> None:
    spellings = (FACT, "testcorp owes me 5,000 ₪.", "TestCorp owes me 5000 shekels")

    def tell(text: str) -> str:
        return remember(text, source="command", source_message_id=uuid.uuid4()).status

    told = at_once(*(partial(tell, text) for text in spellings * 4))
    memory = Memory.objects.get()
    assert (memory.told_count, memory.tellings.count()) == (12, 12)
    assert sorted(told) == ["created"] + ["duplicate"] * 11
    assert MemoryEmbedding.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_prices_told_at_once_one_is_current() -> None:
    prices = [f"The price of tea is {number}" for number in range(30, 42)]
    at_once(*(partial(remember, price) for price in prices))
    assert Memory.objects.count() == 12
    assert Memory.objects.filter(status="active").count() == 1


def test_a_message_that_is_worked_off_again_tells_nothing_again() -> None:
    message = uuid.uuid4()
    embedder = HashingEmbedder()
    for _ in range(3):
        told = remember(FACT, embedder=embedder, source="command", source_message_id=message)
    assert told.memory.told_count == 1
    assert MemorySource.objects.count() == 1
    assert len(embedder.calls) == 1


def test_a_message_worked_off_again_after_a_newer_one_changes_nothing() -> None:
    message = uuid.uuid4()
    for source in ("command", "document"):
        text = f"The price of {source} is 35"
        old = remember(text, source=source, source_message_id=message)
        remember(text.replace("35", "40"))
        again = remember(text, source=source, source_message_id=message)
        assert again.memory == old.memory
        assert again.memory.status == "superseded"


def test_one_message_may_tell_several_facts() -> None:
    message = uuid.uuid4()
    for text in ("Dana likes tea", "Yossi likes coffee"):
        remember(text, source="document", source_message_id=message)
    assert Memory.objects.count() == 2


def test_the_same_fact_in_another_scope_is_another_memory() -> None:
    for changes in (
        {"visibility": "owner", "chat_id": CHAT},
        {"visibility": "chat", "chat_id": CHAT},
        {"visibility": "chat", "chat_id": OTHER_CHAT},
        {"visibility": "public"},
    ):
        assert remember(FACT, **changes).status == "created"
    # The owner's facts are the owner's, from whichever of the owner's chats.
    assert remember(FACT, visibility="owner", chat_id=OTHER_CHAT).status == "duplicate"


def test_the_newer_price_wins_and_the_older_stays_in_history() -> None:
    old = remember("The price is 35").memory
    new = remember("The price is 40")

    assert (new.status, new.superseded) == ("superseding", (old.pk,))
    old.refresh_from_db()
    assert (old.status, old.superseded_by, old.content) == (
        "superseded",
        new.memory,
        "The price is 35",
    )
    assert old.superseded_at is not None
    revision = old.revisions.get()
    assert (revision.number, revision.reason, revision.content) == (
        1,
        "superseded",
        "The price is 35",
    )
    assert recalled("What is the price?") == ["The price is 40"]
    assert audited() == ["memory.remember", "memory.remember", "memory.supersede"]


def test_the_old_price_told_again_wins_again() -> None:
    for text in ("The price is 35", "The price is 40", "The price is 35"):
        remember(text)
    assert recalled("What is the price?") == ["The price is 35"]
    assert Memory.objects.count() == 3


def test_the_older_does_not_come_back_when_the_newer_is_deleted() -> None:
    remember("The price is 35")
    remember("The price is 40").memory.delete()
    assert recalled("What is the price?") == []
    assert Memory.objects.get().status == "superseded"


def test_another_chat_never_replaces_a_memory() -> None:
    remember("The price is 35", visibility="chat", chat_id=CHAT)
    other = remember("The price is 40", visibility="chat", chat_id=OTHER_CHAT)
    assert other.status == "created"


def test_a_pinned_memory_is_replaced_by_staff_alone() -> None:
    pinned = remember("The price is 35", pinned=True).memory
    new = remember("The price is 40")
    assert new.status == "created"
    pinned.refresh_from_db()
    assert pinned.status == "active"
    proposal = MergeProposal.objects.get()
    assert proposal.kind == "replace"
    assert [part.memory_id for part in proposal.parts.all()] == [new.memory.pk, pinned.pk]


def test_an_expired_memory_told_again_is_there_again() -> None:
    past = now_in.now() - timedelta(days=1)
    first = remember(FACT, expires_at=past)
    assert recalled("TestCorp") == []
    again = remember(FACT)
    assert (again.status, again.memory) == ("duplicate", first.memory)
    assert recalled("TestCorp") == [FACT]


def test_what_waits_for_staff_is_not_recalled_and_replaces_nothing() -> None:
    remember("The price is 35")
    proposed = remember("The price is 40", proposed=True, confidence=0.6)
    assert proposed.memory.status == "proposed"
    assert remember("The price is 40", proposed=True).status == "duplicate"
    assert recalled("What is the price?") == ["The price is 35"]


def test_the_audit_log_has_the_hash_and_who_it_was() -> None:
    remember(FACT, actor=Actor("api", "shop"))
    (event,) = AuditEvent.objects.all()
    assert (event.actor_kind, event.actor) == ("api", "shop")
    assert event.content_hash == content_hash(FACT)
    assert "TestCorp" not in str(event.details)


def test_err_memory_005_a_taken_id_is_made_anew() -> None:
    taken = remember("Dana likes tea").memory.pk
    ids = iter([taken, taken, UUID(int=7)])
    assert remember(FACT, new_id=lambda: next(ids)).memory.pk == UUID(int=7)


def test_err_memory_005_three_taken_ids_end_it(caplog: pytest.LogCaptureFixture) -> None:
    taken = remember("Dana likes tea").memory.pk
    with pytest.raises(IntegrityError):
        remember(FACT, new_id=lambda: taken)
    assert caplog.records[-1].levelname == "CRITICAL"
    assert FACT not in caplog.text
    assert Memory.objects.count() == 1


def test_err_memory_006_fields_that_are_no_json_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc)
    metadata = {"ok": [1, {"at": told}], "bad": object(), "nan": float("nan"), "nul": "\x00"}
    stored = remember(FACT, metadata=metadata).memory
    stored.refresh_from_db()
    assert stored.metadata == {"ok": [1, {"at": "2026-01-02T03:04:00+00:00"}]}
    assert caplog.records[0].levelname == "WARNING"
    assert "'bad', 'nan', 'nul'" in caplog.text


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSONISH, max_size=4))
def test_err_memory_006_what_is_kept_of_metadata_is_kept_for_good(metadata: Any) -> None:
    kept = storable_metadata(metadata, log=False)
    assert storable_metadata(kept, log=False) == kept


def test_err_memory_004_nothing_is_stored_when_the_embedder_fails() -> None:
    with pytest.raises(EmbedderError):
        remember(FACT, embedder=HashingEmbedder(failure=EmbedderError("down")))
    assert not Memory.objects.exists()


def new(content: str, **changes: Any) -> NewMemory:
    return NewMemory(**{"content": content, "visibility": "owner", **changes})


def test_a_batch_keeps_its_order(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    remember("fact number 3 is told")
    embedder = HashingEmbedder()
    batch = [new(f"fact number {number} is told") for number in range(500)]
    # A row of the audit log each, and a fixed number of statements for the rest.
    with django_assert_max_num_queries(500 + 20):
        answers = memories_remember(memories=batch, embedder=embedder)
    assert embedder.calls == []
    assert due_vectors_make(embedder=embedder) == MemoryEmbedding.objects.count() - 1 == 499
    assert [answer.memory.content for answer in answers] == [one.content for one in batch]
    assert [place for place, one in enumerate(answers) if one.status == "duplicate"] == [3]


def test_the_database_itself_refuses_a_fact_twice() -> None:
    memory = remember(FACT).memory
    memory.pk = uuid.uuid4()
    memory._state.adding = True
    with pytest.raises(IntegrityError, match="one_memory_a_fact"):
        memory.save()
