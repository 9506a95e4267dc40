"""What staff decide about two memories by themselves."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memories_app.errors import DuplicateFactError, MemoryNotFoundError, MemoryStateError
from memories_app.models import Memory, MergeProposal
from memories_app.review.consolidate import memories_propose_merges
from memories_app.review.decide_proposals import (
    BOTH,
    OLDER,
    contents_stamp,
    contradiction_resolve,
    memories_keep_both,
    memories_merge,
    proposal_accept,
    proposal_reverse,
)
from memories_app.review.memory_history import similar_memories_find
from memories_app.review.pending import memory_approve_corrected
from memories_app.store.change import memory_update
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from sessions_app.embedding.choice import embedder
from tests.remembering import remember

pytestmark = pytest.mark.django_db
STAFF = Actor("staff", "dana")
SAME_MATTER = (
    "The customer Dana Levi prefers morning meetings in the Haifa office",
    "Customer Dana Levi prefers meetings in the morning, Haifa office",
)


def told(*memories: Memory) -> list[tuple[str, Any]]:
    rows = [Memory.objects.get(pk=memory.pk) for memory in memories]
    return [(row.status, row.superseded_by_id) for row in rows]


def test_two_are_merged_on_staffs_word_and_leave_a_decision() -> None:
    kept, other = remember(SAME_MATTER[0], tags=("a",)), remember(SAME_MATTER[1], tags=("b",))
    merged = memories_merge(kept_id=kept.pk, other_id=other.pk, actor=STAFF, embedder=embedder())
    assert merged.pk == kept.pk
    assert told(kept, other) == [("active", None), ("superseded", kept.pk)]
    assert Memory.objects.get(pk=kept.pk).tags == ["a", "b"]
    assert MergeProposal.objects.get().decided_by == "dana"
    with pytest.raises(MemoryStateError):
        memories_merge(kept_id=other.pk, other_id=kept.pk, actor=STAFF, embedder=embedder())


def test_what_is_kept_apart_is_told_so_and_not_proposed_but_may_be_merged_after_all() -> None:
    one, other = remember(SAME_MATTER[0]), remember(SAME_MATTER[1])
    (near,) = similar_memories_find(one)
    assert (near.memory.pk, near.kept_apart) == (other.pk, False)
    assert near.shared > 0.6
    assert near.similarity is not None
    assert near.similarity > 0.8
    memories_keep_both(one_id=other.pk, other_id=one.pk, actor=STAFF)
    assert similar_memories_find(one)[0].kept_apart
    assert memories_propose_merges(model_id=embedder().model_id) == 0
    memories_merge(kept_id=one.pk, other_id=other.pk, actor=STAFF, embedder=embedder())
    assert told(one, other) == [("active", None), ("superseded", one.pk)]
    assert similar_memories_find(one) == []


def test_near_ones_are_of_the_same_scope_and_of_no_other() -> None:
    one = remember(SAME_MATTER[0])
    remember(SAME_MATTER[1], visibility="public")
    remember("The weather was fine")
    assert similar_memories_find(one) == []


@pytest.mark.parametrize("keep", [OLDER, BOTH])
def test_a_contradiction_is_decided_otherwise(keep: str) -> None:
    older, newer = remember("The price is 35"), remember("The price is 40")
    assert told(older, newer) == [("superseded", newer.pk), ("active", None)]
    contradiction_resolve(older_id=older.pk, newer_id=newer.pk, keep=keep, actor=STAFF)
    expected = ("superseded", older.pk) if keep == OLDER else ("active", None)
    assert told(older, newer) == [("active", None), expected]
    assert AuditEvent.objects.filter(action="memory.reinstate", actor="dana").count() == 1
    with pytest.raises(MemoryStateError, match="meanwhile"):
        contradiction_resolve(older_id=older.pk, newer_id=newer.pk, keep=keep, actor=STAFF)


def test_nothing_comes_back_where_another_one_says_it() -> None:
    older, newer = remember("The price is 35"), remember("The price is 40")
    third = remember("The price was fine")
    memory_update(memory_id=third.pk, content="The price is 35", actor=STAFF, embedder=embedder())
    with pytest.raises(DuplicateFactError):
        contradiction_resolve(older_id=older.pk, newer_id=newer.pk, keep=BOTH, actor=STAFF)
    assert told(older, newer) == [("superseded", newer.pk), ("active", None)]


def test_what_is_not_there_is_told() -> None:
    one = remember("The price is 35")
    with pytest.raises(MemoryNotFoundError):
        memories_keep_both(one_id=one.pk, other_id=uuid.uuid4(), actor=STAFF)
    with pytest.raises(MemoryStateError):
        memories_keep_both(one_id=one.pk, other_id=one.pk, actor=STAFF)


def against_a_pin() -> tuple[Memory, Memory, MergeProposal]:
    older, newer = remember("The price is 35", pinned=True), remember("The price is 40")
    return older, newer, MergeProposal.objects.get()


def test_the_pinned_one_may_stay_instead_of_the_newer() -> None:
    older, newer, proposal = against_a_pin()
    proposal_reverse(proposal_id=proposal.pk, actor=STAFF, reason="wrong")
    assert told(older, newer) == [("active", None), ("superseded", older.pk)]
    proposal.refresh_from_db()
    assert (proposal.state, proposal.reason) == ("dismissed", "wrong")
    with pytest.raises(MemoryStateError, match="dismissed already, by dana"):
        proposal_reverse(proposal_id=proposal.pk, actor=STAFF)


def test_a_decision_is_about_what_was_read() -> None:
    older, newer, proposal = against_a_pin()
    seen = contents_stamp([older, newer])
    memory_update(memory_id=newer.pk, content="The price is 45", actor=STAFF, embedder=embedder())
    with pytest.raises(MemoryStateError, match="meanwhile"):
        proposal_accept(proposal_id=proposal.pk, actor=STAFF, embedder=embedder(), seen=seen)
    assert told(older, newer) == [("active", None), ("active", None)]


def test_what_waits_is_corrected_and_counts_from_then_on() -> None:
    older = remember("The price is 35")
    waiting = remember("The price is 400", proposed=True)
    memory_approve_corrected(
        memory_id=waiting.pk, content="The price is 40", actor=STAFF, embedder=embedder()
    )
    assert told(older, waiting) == [("superseded", waiting.pk), ("active", None)]
    assert waiting.revisions.get().content == "The price is 400"
    with pytest.raises(MemoryStateError):
        memory_approve_corrected(
            memory_id=waiting.pk, content="again", actor=STAFF, embedder=embedder()
        )
    waiting.refresh_from_db()
    assert waiting.content == "The price is 40"
