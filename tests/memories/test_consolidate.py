"""Memories that say much the same are proposed to be merged, and merged by staff alone."""

from __future__ import annotations

import uuid

import pytest

from memories_app.errors import MemoryNotFoundError, MemoryStateError, MemoryValidationError
from memories_app.facts.text_diff import shape_of
from memories_app.models import Memory, MergeProposal
from memories_app.review.consolidate import memories_propose_merges
from memories_app.review.decide_proposals import proposal_accept, proposal_dismiss
from memories_app.store.retract import memories_delete
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from tests.doubles.hashing_embedder import HashingEmbedder
from tests.remembering import remember

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


def test_shapes_share_all_with_themselves() -> None:
    assert shape_of(LONG).shared(shape_of(LONG)) == 1
    assert shape_of("").shared(shape_of("")) == 0
