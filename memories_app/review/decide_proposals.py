"""Accept, reverse or dismiss proposals about similar memories."""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.errors import MemoryNotFoundError, MemoryStateError
from memories_app.facts.validation import MAX_TAGS
from memories_app.models import (
    Memory,
    MemoryStatus,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
    RevisionReason,
)
from memories_app.review.pending import checked_text
from memories_app.store import change, memory_fields
from memories_app.store.duplicate_lookup import proposal_reopen
from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.outgoing_webhooks.deliveries import hooks_gathered


def proposal_accept(
    *,
    proposal_id: int,
    actor: Actor,
    embedder: Embedder,
    content: str | None = None,
    reason: str = "",
    seen: str = "",
) -> Memory:
    """Carry out a proposal and return the memory that stays.

    ``content``: its text, if staff changed the proposed one. ``reason``: a DecisionReason.
    ``seen``: the ``contents_stamp`` of the memories as staff read them; the call is refused if
    they changed since.

    merge: the first memory stays. It receives the text, and the tags, pin and number of
    mentions of the others, which it supersedes. replace: the newer one stays, pinned.
    Raises MemoryNotFoundError, MemoryStateError (decided already, or the memories changed
    meanwhile), MemoryValidationError, DuplicateFactError, EmbedderError.
    """
    known = _proposal(proposal_id)
    text = checked_text(known.content if content is None else content, embedder)
    with transaction.atomic(), hooks_gathered():
        proposal, memories = _open(proposal_id)
        _refuse_unseen(memories, seen)
        return accept_locked(proposal, memories, text, actor, reason)


def accept_locked(
    proposal: MergeProposal,
    memories: Sequence[Memory],
    text: change.NewText,
    actor: Actor,
    reason: str = "",
) -> Memory:
    """Do ``proposal_accept`` in the caller's transaction, with everything locked."""
    kept, *others = memories
    replaces = proposal.kind == ProposalKind.REPLACE
    why = RevisionReason.SUPERSEDED if replaces else RevisionReason.MERGED
    for memory in others:
        change.memory_supersede(older=memory, newer=kept, actor=actor, reason=why)
    _text_set(kept, text, actor)
    kept.pinned = any(memory.pinned for memory in memories)
    if not replaces:
        kept.told_count = sum(memory.told_count for memory in memories)
        kept.last_told_at = max(memory.last_told_at for memory in memories)
        tags = dict.fromkeys(tag for memory in memories for tag in memory.tags)
        kept.tags = list(tags)[:MAX_TAGS]
        memory_fields.terms_set(kept)
    kept.save()
    decide_locked(proposal, ProposalState.ACCEPTED, actor, reason)
    memory_fields.memory_audit(
        "memory.merge", kept, actor, others=[str(other.pk) for other in others]
    )
    return kept


def _text_set(kept: Memory, text: change.NewText, actor: Actor) -> None:
    if kept.content != text.content:
        memory_fields.revisions_add([kept], reason=RevisionReason.MERGED, actor=actor)
        change.refuse_duplicate(kept, scope=kept.scope, content=text.content)
        memory_fields.content_set(kept, **vars(text))


def proposal_reverse(*, proposal_id: int, actor: Actor, reason: str = "", seen: str = "") -> Memory:
    """Keep the older memory of a contradiction: it supersedes the newer one.

    Return the memory that stays. Raises MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic(), hooks_gathered():
        proposal, memories = _open(proposal_id)
        _refuse_unseen(memories, seen)
        if proposal.kind != ProposalKind.REPLACE:
            raise MemoryStateError(_("These memories don't contradict each other."))
        newer, older = memories
        change.memory_supersede(older=newer, newer=older, actor=actor)
        decide_locked(proposal, ProposalState.DISMISSED, actor, reason)
    return older


def contents_stamp(memories: Iterable[Memory]) -> str:
    """Return a stamp of the contents, so that a decision applies to what staff have read."""
    parts = sorted(f"{memory.pk} {memory.content_hash} {memory.scope}" for memory in memories)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:32]


def _refuse_unseen(memories: Iterable[Memory], seen: str) -> None:
    if seen and seen != contents_stamp(memories):
        raise _changed()


def _changed() -> MemoryStateError:
    return MemoryStateError(_("Somebody changed one of these memories meanwhile. Look again."))


def proposal_dismiss(*, proposal_id: int, actor: Actor, reason: str = "") -> None:
    """Keep the memories unchanged and never propose them again.

    Raises MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        proposal = MergeProposal.objects.select_for_update(no_key=True).filter(pk=proposal_id)
        found = proposal.first() or _proposal(proposal_id)
        _refuse_decided(found)
        decide_locked(found, ProposalState.DISMISSED, actor, reason)


# Take back a decision that was just made.

# What a merge changes of the memory that stays.
MERGED = ("pinned", "told_count", "last_told_at", "tags")


def proposal_before(proposal_id: int) -> dict[str, Any]:
    """Return what ``proposal_undo`` needs of the memory that stays; empty where none is left."""
    part = ProposalMemory.objects.filter(proposal=proposal_id).order_by("number")
    kept = part.select_related("memory").first()
    if kept is None:
        return {}
    values = {name: getattr(kept.memory, name) for name in MERGED}
    values |= {"last_told_at": kept.memory.last_told_at.isoformat()}
    return {"proposal": proposal_id, "content": kept.memory.content, **values}


def proposal_undo(*, before: dict[str, Any], actor: Actor, embedder: Embedder) -> None:
    """Open a proposal again, with its memories as ``proposal_before`` found them.

    Raises MemoryNotFoundError, EmbedderError, and MemoryStateError if somebody changed one of the
    memories since, or decided once more.
    """
    text = checked_text(before["content"], embedder)
    with transaction.atomic(), hooks_gathered():
        proposal, memories = _locked(before["proposal"])
        changed = any(
            each.updated_at > (proposal.decided_at or each.updated_at) for each in memories
        )
        if proposal.state == ProposalState.OPEN or len(memories) < 2 or changed:
            raise _changed()
        kept = memories[0]
        if proposal.state == ProposalState.ACCEPTED:
            _text_set(kept, text, actor)
            for name in MERGED:
                setattr(kept, name, before[name])
            kept.last_told_at = datetime.fromisoformat(before["last_told_at"])
            memory_fields.terms_set(kept)
            kept.save()
        for memory in memories:
            if memory.status == MemoryStatus.SUPERSEDED:
                change.refuse_duplicate(memory, scope=memory.scope, content=memory.content)
                change.memory_reinstate(memory, actor=actor)
        proposal.state, proposal.decided_at = str(ProposalState.OPEN), None
        proposal.decided_by = proposal.reason = ""
        proposal.save(update_fields=["state", "decided_at", "decided_by", "reason"])
        audit_record("proposal.reopen", actor, "proposal", proposal.pk, chat_id=_chat_of(proposal))


def _proposal(proposal_id: int) -> MergeProposal:
    proposal = MergeProposal.objects.filter(pk=proposal_id).first()
    if proposal is None:
        raise MemoryNotFoundError(_("There is no proposal %(id)s.") % {"id": proposal_id})
    return proposal


def _locked(proposal_id: int) -> tuple[MergeProposal, list[Memory]]:
    """Return the proposal and its memories, locked; the memory that stays comes first."""
    parts = ProposalMemory.objects.filter(proposal=proposal_id).order_by("number")
    ids = list(parts.values_list("memory_id", flat=True))
    memory_fields.scopes_lock(Memory.objects.filter(pk__in=ids).values_list("scope", flat=True))
    locked = MergeProposal.objects.select_for_update(no_key=True).filter(pk=proposal_id).first()
    found = Memory.objects.select_for_update(no_key=True).in_bulk(ids)
    return locked or _proposal(proposal_id), [found[pk] for pk in ids if pk in found]


def _open(proposal_id: int) -> tuple[MergeProposal, list[Memory]]:
    """Return what ``_locked`` does, if the proposal can be decided."""
    proposal, memories = _locked(proposal_id)
    _refuse_decided(proposal)
    active = all(memory.status == MemoryStatus.ACTIVE for memory in memories)
    if not active or len(memories) < 2 or len({memory.scope for memory in memories}) > 1:
        raise MemoryStateError(
            _(
                "A memory of this proposal isn't active any more, or is seen by others now. "
                "Dismiss the proposal."
            )
        )
    return proposal, memories


def _refuse_decided(proposal: MergeProposal) -> None:
    if proposal.state != ProposalState.OPEN:
        if proposal.state == ProposalState.ACCEPTED:
            text = _("This proposal is accepted already, by %(who)s.")
        else:
            text = _("This proposal is dismissed already, by %(who)s.")
        raise MemoryStateError(text % {"who": proposal.decided_by})


def decide_locked(proposal: MergeProposal, state: str, actor: Actor, reason: str = "") -> None:
    """Record the decision, in the caller's transaction."""
    proposal.state = state
    proposal.decided_at = timezone.now()
    proposal.decided_by = actor.name or actor.kind
    proposal.reason = reason
    proposal.save(update_fields=["state", "decided_at", "decided_by", "reason"])
    audit_record(
        f"proposal.{'accept' if state == ProposalState.ACCEPTED else 'dismiss'}",
        actor,
        "proposal",
        proposal.pk,
        kind=proposal.kind,
        **({"reason": reason} if reason else {}),
        chat_id=_chat_of(proposal),
    )


def _chat_of(proposal: MergeProposal) -> UUID | None:
    """Return the chat to which all of its memories belong; None if there is no such chat."""
    chat_ids = set(proposal.parts.values_list("memory__chat_id", flat=True))
    return chat_ids.pop() if len(chat_ids) == 1 else None


# Resolve two memories directly: merge them, keep both, or resolve a contradiction.


# The choices for an older memory and the newer one that superseded it.
OLDER, BOTH = "older", "both"


def memories_merge(
    *, kept_id: UUID, other_id: UUID, actor: Actor, embedder: Embedder, seen: str = ""
) -> Memory:
    """Merge two active memories of a scope: the first stays and supersedes the other.

    ``seen``: see ``proposal_accept``.

    Raises MemoryNotFoundError, MemoryStateError, EmbedderError; nothing is changed then.
    """
    text = checked_text(change.memory_get(kept_id).content, embedder)
    with transaction.atomic(), hooks_gathered():
        kept, other = _active_pair(kept_id, other_id, seen)
        if kept.content != text.content:
            raise _changed()
        return accept_locked(proposal_reopen([kept, other]), [kept, other], text, actor)


def memories_keep_both(*, one_id: UUID, other_id: UUID, actor: Actor, seen: str = "") -> None:
    """Keep two similar memories as two facts: no merge is proposed any more.

    Raises MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        pair = _active_pair(one_id, other_id, seen)
        decide_locked(proposal_reopen(pair), ProposalState.DISMISSED, actor)


def contradiction_resolve(*, older_id: UUID, newer_id: UUID, keep: str, actor: Actor) -> Memory:
    """Change the resolution of a contradiction in which ``newer`` superseded ``older``.

    OLDER: the older one supersedes the newer one. BOTH: both are active. Return the older one.

    Raises MemoryNotFoundError, MemoryStateError (somebody decided meanwhile), and
    DuplicateFactError where another memory says the same; nothing is changed then.
    """
    with transaction.atomic(), hooks_gathered():
        older, newer = _locked_pair(older_id, newer_id)
        is_superseded = (
            older.status == MemoryStatus.SUPERSEDED and older.superseded_by_id == newer.pk
        )
        if not is_superseded or newer.status != MemoryStatus.ACTIVE:
            raise MemoryStateError(
                _("Somebody decided about these memories meanwhile. Look again.")
            )
        if keep == OLDER:
            change.memory_supersede(older=newer, newer=older, actor=actor)
        older.status = MemoryStatus.ACTIVE
        change.refuse_duplicate(older, scope=older.scope, content=older.content)
        change.memory_reinstate(older, actor=actor)
    return older


def _active_pair(one_id: UUID, other_id: UUID, seen: str) -> tuple[Memory, Memory]:
    """Return both memories locked. Refuse them if they can't be merged any more."""
    one, other = _locked_pair(one_id, other_id)
    active = all(memory.status == MemoryStatus.ACTIVE for memory in (one, other))
    if not active or one.scope != other.scope:
        raise MemoryStateError(
            _("One of these memories isn't active any more, or is seen by others now. Look again.")
        )
    _refuse_unseen([one, other], seen)
    return one, other


def _locked_pair(one_id: UUID, other_id: UUID) -> tuple[Memory, Memory]:
    if one_id == other_id:
        raise MemoryStateError(_("This is one memory."))
    rows = Memory.objects.filter(pk__in=[one_id, other_id])
    memory_fields.scopes_lock(rows.values_list("scope", flat=True))
    found = {
        memory.pk: memory for memory in rows.select_for_update(no_key=True).order_by("memory_id")
    }
    for key in (one_id, other_id):
        if key not in found:
            raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": key})
    return found[one_id], found[other_id]
