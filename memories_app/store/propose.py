"""Asks staff about memories that are alike."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from uuid import UUID

from memories_app.models import Memory, MergeProposal, ProposalKind, ProposalMemory, ProposalState


def alike_key(kind: str, memory_ids: Sequence[UUID]) -> str:
    """Names a proposal about these memories, in whatever order."""
    told = " ".join([kind, *sorted(map(str, memory_ids))])
    return hashlib.sha256(told.encode()).hexdigest()


def replacement_propose(*, newer: Memory, older: Memory) -> None:
    """Ask staff whether ``newer`` takes the place of ``older``, which is pinned."""
    proposal_add(
        kind=ProposalKind.REPLACE, memories=[newer, older], content=newer.content, similarity=1.0
    )


def proposal_add(
    *, kind: str, memories: Sequence[Memory], content: str, similarity: float
) -> MergeProposal | None:
    """A proposal about these memories, the one that stays first; None where they were
    proposed before, whatever was decided."""
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
    """The proposal about these memories, open and locked, whatever was decided about them
    before: staff ask for it themselves. In the caller's transaction."""
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
