"""Propose decisions about similar memories to staff."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from uuid import UUID

from memories_app.models import Memory, MergeProposal, ProposalKind, ProposalMemory, ProposalState


def alike_key(kind: str, memory_ids: Sequence[UUID]) -> str:
    """Return a key for a proposal about these memories, independent of their order."""
    text = " ".join([kind, *sorted(map(str, memory_ids))])
    return hashlib.sha256(text.encode()).hexdigest()


def replacement_propose(*, newer: Memory, older: Memory) -> None:
    """Propose that ``newer`` supersedes ``older``, which is pinned or may be true beside it."""
    proposal_add(
        kind=ProposalKind.REPLACE, memories=[newer, older], content=newer.content, similarity=1.0
    )


def proposal_add(
    *, kind: str, memories: Sequence[Memory], content: str, similarity: float
) -> MergeProposal | None:
    """Create a proposal about these memories; the memory that stays comes first.

    Return None if there was a proposal about them before, whatever its decision.
    """
    key = alike_key(kind, [memory.pk for memory in memories])
    proposal, made = MergeProposal.objects.get_or_create(
        alike_key=key, defaults={"kind": kind, "content": content, "similarity": similarity}
    )
    if not made:
        return None
    _parts_add(proposal, memories)
    return proposal


def proposal_reopen(
    *, kind: str, memories: Sequence[Memory], content: str, similarity: float
) -> MergeProposal:
    """Return the proposal about these memories, open and locked, even if it was decided before.

    It is used when staff ask for the proposal themselves. Call it in a transaction.
    """
    proposal = proposal_add(kind=kind, memories=memories, content=content, similarity=similarity)
    if proposal is not None:
        return proposal
    key = alike_key(kind, [memory.pk for memory in memories])
    known = MergeProposal.objects.select_for_update(no_key=True).get(alike_key=key)
    known.state, known.content = ProposalState.OPEN, content
    known.decided_at, known.decided_by, known.reason = None, "", ""
    known.save()
    known.parts.all().delete()
    _parts_add(known, memories)
    return known


def _parts_add(proposal: MergeProposal, memories: Sequence[Memory]) -> None:
    ProposalMemory.objects.bulk_create(
        ProposalMemory(proposal=proposal, memory=memory, number=number)
        for number, memory in enumerate(memories, start=1)
    )
