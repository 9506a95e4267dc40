"""Changing memories: revisions, visibility, pins, ends, and what waits for staff."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memories_app.errors import MemoryStateError, MemoryValidationError
from memories_app.models import Memory, MemoryEmbedding
from memories_app.review.pending import memory_approve, memory_reject
from memories_app.store.change import memory_pin, memory_set_visibility
from memories_app.store.memory_fields import content_hash
from memories_app.store.retract import memories_delete
from memories_app.store.same_files import memories_move
from memories_app.visibility import memories_for_staff, memories_in_order, memories_visible
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from tests import remembering
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import memory_expire_at, memory_update

pytestmark = pytest.mark.django_db
STAFF = Actor("staff", "dana")
CHAT = uuid.uuid4()
EMBEDDER = HashingEmbedder()


def remember(content: str, **changes: Any) -> Memory:
    return remembering.remember(content, **{"embedder": EMBEDDER, **changes})


def update(memory: Memory, **changes: Any) -> Memory:
    values = {"actor": STAFF, "embedder": EMBEDDER, **changes}
    return memory_update(memory_id=memory.pk, **values)


def actions() -> list[str]:
    return list(AuditEvent.objects.order_by("id").values_list("action", flat=True))


def test_an_update_keeps_what_was_said_before() -> None:
    memory = remember("TestCorp is in Haifa", tags=("old",))
    other = HashingEmbedder(64)
    changed = update(
        memory, content="TestCorp is in Tel Aviv", tags=["new"], category="b", embedder=other
    )
    assert (changed.content, changed.tags, changed.category) == (
        "TestCorp is in Tel Aviv",
        ["new"],
        "b",
    )
    assert changed.content_hash == content_hash(changed.content)
    revision = memory.revisions.get()
    assert (revision.number, revision.content, revision.tags, revision.category) == (
        1,
        "TestCorp is in Haifa",
        ["old"],
        "",
    )
    assert (revision.changed_by_kind, revision.changed_by_name) == ("staff", "dana")
    assert [each.model for each in MemoryEmbedding.objects.all()] == ["hashing-64"]
    update(changed, type="place")
    assert [each.number for each in memory.revisions.all()] == [1, 2]
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.details) == ("memory.update", {"fields": ["type"]})


def test_what_is_unchanged_makes_no_revision() -> None:
    memory = remember("TestCorp is in Haifa", tags=("a",), metadata={"n": 1})
    calls = len(EMBEDDER.calls)
    update(memory, content="TestCorp is in Haifa", tags=["a"], type="fact", metadata={"n": 1})
    assert memory.revisions.count() == 0
    assert len(EMBEDDER.calls) == calls
    assert actions() == ["memory.remember"]


def test_a_text_may_be_spelt_otherwise() -> None:
    memory = remember("TestCorp owes me 5000 shekels")
    assert update(memory, content="TestCorp owes me ₪5,000.").content == "TestCorp owes me ₪5,000."


def test_a_failing_embedder_changes_nothing() -> None:
    memory = remember("Dana likes tea")
    with pytest.raises(EmbedderError):
        update(memory, content="new", embedder=HashingEmbedder(failure=EmbedderError("down")))
    memory.refresh_from_db()
    assert memory.content == "Dana likes tea"
    assert memory.embeddings.count() == 1


def test_visibility_changes_with_a_line_in_the_audit_log() -> None:
    memory = remember("We open at 9", visibility="chat", chat_id=CHAT)
    changed = memory_set_visibility(memory_id=memory.pk, visibility="public", actor=STAFF)
    assert (changed.visibility, changed.scope) == ("public", "public")
    assert memory.revisions.get().visibility == "chat"
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor, event.details) == (
        "memory.visibility",
        "dana",
        {"before": "chat", "after": "public"},
    )
    memory_set_visibility(memory_id=memory.pk, visibility="public", actor=STAFF)
    assert memory.revisions.count() == 1


def test_pins_and_ends_are_audited_once() -> None:
    memory = remember("We open at 9")
    tomorrow = timezone.now() + timedelta(days=1)
    for _ in range(2):
        memory_pin(memory_id=memory.pk, actor=STAFF)
        memory_expire_at(memory_id=memory.pk, at=tomorrow, actor=STAFF)
    memory_pin(memory_id=memory.pk, actor=STAFF, pinned=False)
    assert actions() == ["memory.remember", "memory.pin", "memory.expiry", "memory.unpin"]
    with pytest.raises(MemoryValidationError):
        memory_expire_at(memory_id=memory.pk, at=datetime(2030, 1, 1), actor=STAFF)


def test_approving_lets_it_count_and_supersedes_what_it_contradicts() -> None:
    old = remember("The price is 35")
    waiting = remember("The price is 40", proposed=True)
    assert memory_approve(memory_id=waiting.pk, actor=STAFF).status == "active"
    old.refresh_from_db()
    assert old.superseded_by == waiting
    with pytest.raises(MemoryStateError):
        memory_approve(memory_id=waiting.pk, actor=STAFF)


def test_approving_what_is_known_by_now_tells_it_again() -> None:
    waiting = remember("The price is 40", proposed=True)
    known = remember("the price is 40!")
    assert memory_approve(memory_id=waiting.pk, actor=STAFF) == known
    known.refresh_from_db()
    waiting.refresh_from_db()
    assert (known.told_count, waiting.status) == (2, "superseded")


def test_rejecting_deletes_what_waits_and_nothing_else() -> None:
    waiting, active = remember("maybe so", proposed=True), remember("Dana likes tea")
    memory_reject(memory_id=waiting.pk, actor=STAFF)
    assert list(Memory.objects.all()) == [active]
    with pytest.raises(MemoryStateError):
        memory_reject(memory_id=active.pk, actor=STAFF)


def test_deleting_takes_older_versions_and_their_revisions_along() -> None:
    for price in (35, 40, 45):
        memory = remember(f"The price is {price}")
    stays = remember("Dana likes tea")
    gone = memories_delete(memory_ids=[memory.pk, uuid.uuid4()], actor=STAFF)
    assert len(gone) == 3
    assert list(Memory.objects.all()) == [stays]
    assert actions().count("memory.forget") == 3


def test_pinned_memories_stand_first_then_the_newest() -> None:
    first = remember("Dana likes tea", tags=("a", "b"), category="people", source="api")
    pinned = remember("We open at 9", visibility="public", type="hours", pinned=True)
    mine = remember("Yossi likes coffee", visibility="chat", chat_id=CHAT)
    waiting = remember("Perhaps", proposed=True)
    ended = remember("Gone", expires_at=timezone.now() - timedelta(days=1))
    staff = memories_for_staff()
    visible = memories_visible(is_owner=True, is_staff=False, chat_id=None)
    assert list(memories_in_order(visible)) == [pinned, mine, first]
    assert list(memories_in_order(staff)) == [pinned, ended, waiting, mine, first]


def test_two_chats_that_become_one_have_each_fact_once() -> None:
    other = uuid.uuid4()
    kept = remember("Dana likes tea", visibility="chat", chat_id=CHAT)
    twin = remember("dana likes tea!", visibility="chat", chat_id=other)
    single = remember("Dana likes coffee", visibility="chat", chat_id=other)
    mine = remember("Dana likes tea", visibility="owner", chat_id=other)
    with transaction.atomic():
        assert memories_move(from_chat=other, to_chat=CHAT) == 3
    for memory in (kept, twin, single, mine):
        memory.refresh_from_db()
        assert memory.chat_id == CHAT
    assert (kept.told_count, twin.status, twin.superseded_by) == (2, "superseded", kept)
    assert (single.status, mine.status) == ("active", "active")
    assert twin.revisions.get().reason == "merged"
