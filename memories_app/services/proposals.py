"""What staff answer about memories that are alike, and what follows from it."""

from __future__ import annotations

import hashlib

from django.db import transaction
from django.utils import timezone

from memories_app.errors import MemoryNotFoundError, MemoryStateError, MemoryValidationError
from memories_app.models import (
    Memory,
    MemoryStatus,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
    RevisionReason,
)
from memories_app.services.locked import content_set, refuse_duplicate
from memories_app.services.locks import scopes_lock
from memories_app.services.storing import memory_audit, revisions_add
from memories_app.services.supersede import memory_supersede
from memories_app.validation import MAX_TAGS, label_problems
from memoryproject.audit.events import Actor, audit_record
from memoryproject.integrations.embedders.base import Embedder
from memoryproject.integrations.embedders.covered import covered_vectors


def proposal_accept(
    *, proposal_id: int, actor: Actor, embedder: Embedder, content: str | None = None
) -> Memory:
    """Do what is proposed and return the memory that stays. ``content``: what it says, where
    staff wrote it otherwise than proposed.

    merge: the first memory stays and takes the text, tags, pin and tellings' count of the
    others, which are superseded by it. replace: the newer one stays, pinned.
    Raises MemoryNotFoundError, MemoryStateError (decided already, or the memories changed
    meanwhile), MemoryValidationError, DuplicateFactError, EmbedderError.
    """
    known = _proposal(proposal_id)
    text = known.content if content is None else content
    problems = label_problems(content=text)
    if problems:
        raise MemoryValidationError(problems)
    (vector,) = covered_vectors(embedder, [text])
    with transaction.atomic():
        proposal, memories = _open(proposal_id)
        kept, *others = memories
        now = timezone.now()
        replaces = proposal.kind == ProposalKind.REPLACE
        reason = RevisionReason.SUPERSEDED if replaces else RevisionReason.MERGED
        for memory in others:
            memory_supersede(older=memory, newer=kept, reason=reason, actor=actor, at=now)
        if kept.content != text:
            revisions_add([kept], reason=RevisionReason.MERGED, actor=actor)
            refuse_duplicate(kept, scope=kept.scope, content=text)
            hashed = hashlib.sha256(text.encode()).hexdigest()
            content_set(
                kept, content=text, hashed=hashed, vector=vector, model_id=embedder.model_id
            )
        kept.pinned = any(memory.pinned for memory in memories)
        if not replaces:
            kept.told_count = sum(memory.told_count for memory in memories)
            kept.last_told_at = max(memory.last_told_at for memory in memories)
            tags = dict.fromkeys(tag for memory in memories for tag in memory.tags)
            kept.tags = list(tags)[:MAX_TAGS]
        kept.save()
        _decide(proposal, ProposalState.ACCEPTED, actor)
        memory_audit("memory.merge", kept, actor, others=[str(other.pk) for other in others])
    return kept


def proposal_dismiss(*, proposal_id: int, actor: Actor) -> None:
    """Leave the memories as they are; these are not proposed again. Raises
    MemoryNotFoundError, MemoryStateError."""
    with transaction.atomic():
        proposal = MergeProposal.objects.select_for_update(no_key=True).filter(pk=proposal_id)
        found = proposal.first() or _proposal(proposal_id)
        _refuse_decided(found)
        _decide(found, ProposalState.DISMISSED, actor)


def _proposal(proposal_id: int) -> MergeProposal:
    proposal = MergeProposal.objects.filter(pk=proposal_id).first()
    if proposal is None:
        raise MemoryNotFoundError(f"There is no proposal {proposal_id}.")
    return proposal


def _open(proposal_id: int) -> tuple[MergeProposal, list[Memory]]:
    """The proposal and its memories, locked; the one that stays first."""
    parts = ProposalMemory.objects.filter(proposal=proposal_id).order_by("number")
    ids = list(parts.values_list("memory_id", flat=True))
    scopes_lock(Memory.objects.filter(pk__in=ids).values_list("scope", flat=True))
    locked = MergeProposal.objects.select_for_update(no_key=True).filter(pk=proposal_id).first()
    proposal = locked or _proposal(proposal_id)
    _refuse_decided(proposal)
    found = {
        memory.pk: memory
        for memory in Memory.objects.select_for_update(no_key=True).filter(
            pk__in=ids, status=MemoryStatus.ACTIVE
        )
    }
    memories = [found[pk] for pk in ids if pk in found]
    if len(memories) < max(len(ids), 2) or len({memory.scope for memory in memories}) > 1:
        raise MemoryStateError(
            "A memory of this proposal isn't active any more, or is seen by others now. "
            "Dismiss the proposal."
        )
    return proposal, memories


def _refuse_decided(proposal: MergeProposal) -> None:
    if proposal.state != ProposalState.OPEN:
        raise MemoryStateError(f"This proposal is {proposal.state} already.")


def _decide(proposal: MergeProposal, state: str, actor: Actor) -> None:
    proposal.state = state
    proposal.decided_at = timezone.now()
    proposal.decided_by = actor.name or actor.kind
    proposal.save(update_fields=["state", "decided_at", "decided_by"])
    audit_record(
        action=f"proposal.{'accept' if state == ProposalState.ACCEPTED else 'dismiss'}",
        actor=actor,
        object_type="proposal",
        object_id=proposal.pk,
        details={"kind": proposal.kind},
    )
