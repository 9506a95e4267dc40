"""Memories that say much the same are proposed to be merged, and merged by staff alone."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memories_app.errors import (
    DuplicateFactError,
    MemoryNotFoundError,
    MemoryStateError,
    MemoryValidationError,
)
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
    proposal_dismiss,
    proposal_reverse,
)
from memories_app.review.memory_history import similar_memories_find
from memories_app.review.pending import memory_approve_corrected
from memories_app.store.retract import memories_delete
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from sessions_app.embedding.choice import embedder
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import memory_update, remember

pytestmark = pytest.mark.django_db
STAFF = Actor("staff", "dana")
EMBEDDER = WordLlamaEmbedder()
LONG = "The customer Dana Levi prefers morning meetings in the Haifa office"
SHORT = "Customer Dana Levi prefers meetings in the morning, Haifa office"
CHAT = uuid.uuid4()


def propose() -> int:
    return memories_propose_merges(model_id=EMBEDDER.model_id)


@pytest.fixture
def proposal() -> MergeProposal:
    remember(SHORT, tags=("a",))
    remember(LONG, tags=("b",))
    assert propose() == 1
    return MergeProposal.objects.get()


def test_similar_memories_are_proposed_and_nothing_else_happens(proposal: MergeProposal) -> None:
    assert (proposal.kind, proposal.state, proposal.content) == ("merge", "open", LONG)
    assert [part.memory.content for part in proposal.parts.all()] == [LONG, SHORT]
    assert 0.6 <= proposal.similarity <= 1
    assert set(Memory.objects.values_list("status", flat=True)) == {"active"}
    assert propose() == 0, "it is proposed already"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Dana Levi prefers morning meetings", "Yossi Cohen sells green carpets"),
        (
            "Dana Levi paid invoice INV-001 for carpets",
            "Dana Levi paid invoice INV-002 for carpets",
        ),
        ("Customer Dana Levi likes green carpets", "Dana Levi doesn't like any green carpets"),
        ("Her plumber in Haifa is Dan", "My plumber in Haifa is Dan"),
        ("הלקוחה דנה לוי רוצה שטיח ירוק", "הלקוחה דנה לוי לא רוצה שטיח ירוק גדול"),
    ],
)
def test_what_differs_in_substance_is_not_proposed(one: str, other: str) -> None:
    remember(one)
    remember(other)
    assert propose() == 0


def test_hebrew_is_compared_by_its_words() -> None:
    remember("הלקוחה דנה לוי מעדיפה פגישות בבוקר במשרד חיפה")
    remember("דנה לוי מעדיפה פגישות בבוקר במשרד חיפה")
    assert propose() == 1


def test_other_scopes_and_pinned_memories_are_left_out() -> None:
    remember(SHORT, visibility="chat", chat_id=CHAT)
    remember(LONG, visibility="public")
    remember(SHORT, visibility="owner", pinned=True)
    remember(LONG, visibility="owner")
    assert propose() == 0


def test_accepting_leaves_one_with_what_both_had(proposal: MergeProposal) -> None:
    kept = proposal_accept(proposal_id=proposal.pk, actor=STAFF, embedder=EMBEDDER)
    assert (kept.content, kept.told_count, set(kept.tags)) == (LONG, 2, {"a", "b"})
    merged = Memory.objects.get(content=SHORT)
    assert (merged.status, merged.superseded_by) == ("superseded", kept)
    assert merged.revisions.get().reason == "merged"
    proposal.refresh_from_db()
    assert (proposal.state, proposal.decided_by) == ("accepted", "dana")
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions[2:] == ["memory.supersede", "proposal.accept", "memory.merge"]
    with pytest.raises(MemoryStateError, match="accepted already"):
        proposal_accept(proposal_id=proposal.pk, actor=STAFF, embedder=EMBEDDER)


def test_staff_may_write_it_otherwise(proposal: MergeProposal) -> None:
    kept = proposal_accept(
        proposal_id=proposal.pk, actor=STAFF, embedder=EMBEDDER, content="Dana: mornings, Haifa"
    )
    assert kept.content == "Dana: mornings, Haifa"
    assert kept.revisions.get().content == LONG
    with pytest.raises(MemoryValidationError):
        proposal_accept(proposal_id=proposal.pk, actor=STAFF, embedder=EMBEDDER, content=" ")


def test_what_is_dismissed_is_not_proposed_again(proposal: MergeProposal) -> None:
    proposal_dismiss(proposal_id=proposal.pk, actor=STAFF)
    assert propose() == 0
    assert Memory.objects.filter(status="active").count() == 2
    with pytest.raises(MemoryStateError):
        proposal_dismiss(proposal_id=proposal.pk, actor=STAFF)


def test_a_proposal_whose_memories_changed_is_refused(proposal: MergeProposal) -> None:
    Memory.objects.filter(content=SHORT).update(visibility="public")
    with pytest.raises(MemoryStateError, match="Dismiss"):
        proposal_accept(proposal_id=proposal.pk, actor=STAFF, embedder=EMBEDDER)
    assert Memory.objects.filter(status="active").count() == 2


def test_a_proposal_goes_with_the_memory_that_it_repeats(proposal: MergeProposal) -> None:
    memories_delete(memory_ids=[Memory.objects.get(content=LONG).pk], actor=STAFF)
    assert not MergeProposal.objects.exists()
    with pytest.raises(MemoryNotFoundError):
        proposal_dismiss(proposal_id=proposal.pk, actor=STAFF)


def test_staff_replace_a_pinned_memory() -> None:
    old = remember("The price is 35", pinned=True, embedder=HashingEmbedder())
    remember("The price is 40", embedder=HashingEmbedder())
    kept = proposal_accept(
        proposal_id=MergeProposal.objects.get().pk, actor=STAFF, embedder=EMBEDDER
    )
    old.refresh_from_db()
    assert (kept.content, kept.pinned, kept.told_count) == ("The price is 40", True, 1)
    assert (old.status, old.superseded_by) == ("superseded", kept)
    assert old.revisions.get().reason == "superseded"


def test_three_alike_are_one_proposal() -> None:
    for place in ("north", "south", "east"):
        remember(
            f"Dana Levi prefers long morning meetings with coffee and cake, {place} Haifa office"
        )
    assert propose() == 1
    assert MergeProposal.objects.get().parts.count() == 3


# What staff decide about two memories by themselves.


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
