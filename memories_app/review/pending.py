"""Decide about memories that wait for staff."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Model
from django.utils import timezone
from django.utils.translation import gettext, gettext as _

from memories_app.embedding_models.vectors import vector_due, vectors_request
from memories_app.errors import MemoryStateError, MemoryValidationError
from memories_app.facts.facts import likeness_of, speakers_in
from memories_app.facts.validation import label_problems
from memories_app.facts.validity import Validity
from memories_app.models import Memory, MemoryStatus, MergeProposal, ProposalState, RevisionReason
from memories_app.store import change
from memories_app.store.duplicate_lookup import Claim, KnownFacts, last_before, replacement_propose
from memories_app.store.memory_fields import memory_audit, scopes_lock
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.outgoing_webhooks.deliveries import hooks_gathered

# The end of each of some memories.
Ends = dict[UUID, datetime | None]


def memory_approve(
    *, memory_id: UUID, actor: Actor, seen: str = "", ended: Ends | None = None
) -> Memory:
    """Activate a proposed memory, as if it were mentioned now; return the active memory.

    If the fact is known already, the known memory is mentioned again. Memories that it
    contradicts are superseded, or end when it begins to hold. ``seen``: the hash of the content as
    staff read it; the call is refused if the content changed since. ``ended`` is filled with the
    memories that end now, each with its end before. Raises MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        memory = _waiting(memory_id, seen)
        now = timezone.now()
        likeness = likeness_of(memory.content)
        known = KnownFacts.load(
            scopes=[memory.scope], likenesses=[likeness], fact_keys=[memory.fact_key]
        )
        same = known.same(memory.scope, memory.fact_key, likeness)
        if same is not None:
            same.told_count += memory.told_count
            same.last_told_at = now
            same.save(update_fields=["told_count", "last_told_at", "updated_at"])
            change.memory_supersede(
                older=memory, newer=same, actor=actor, reason=RevisionReason.MERGED
            )
            return same
        validity = Validity(memory.valid_from, memory.valid_until)
        speakers = frozenset(speakers_in(memory.likeness))
        claim = Claim(likeness, memory.said_at, validity, chat_id=memory.chat_id, speakers=speakers)
        found = known.contradicted(memory.scope, claim, now)
        for older in (*found.replaced, *found.ending, *found.unsure):
            if older.pinned or older in found.unsure:
                replacement_propose(newer=memory, older=older)
            elif older in found.ending:
                if ended is not None:
                    ended[older.pk] = older.valid_until
                change.times_set(
                    change.memory_locked(older.pk), {"valid_until": last_before(memory)}, actor
                )
            else:
                change.memory_supersede(older=older, newer=memory, actor=actor)
        memory.status = MemoryStatus.ACTIVE
        memory.save(update_fields=["status", "updated_at"])
        memory_audit("memory.approve", memory, actor)
    return memory


def memory_unapprove(*, memory_id: UUID, ended: Ends, actor: Actor) -> None:
    """Undo ``memory_approve``, just after it: the memory waits again, the others hold as before.

    Raises MemoryNotFoundError, MemoryStateError, and DuplicateFactError where another memory says
    the same as one of the others.
    """
    with transaction.atomic(), hooks_gathered():
        memory = change.memory_locked(memory_id)
        same = memory.superseded_by
        if memory.status == MemoryStatus.SUPERSEDED and same is not None:
            fewer = F("told_count") - memory.told_count
            Memory.objects.filter(pk=same.pk).update(told_count=fewer, updated_at=timezone.now())
        elif memory.status != MemoryStatus.ACTIVE:
            raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
        memory.status, memory.superseded_by, memory.superseded_at = (
            MemoryStatus.PROPOSED,
            None,
            None,
        )
        memory.save(update_fields=["status", "superseded_by", "superseded_at", "updated_at"])
        for older in Memory.objects.select_for_update(no_key=True).filter(superseded_by=memory):
            change.refuse_duplicate(older, scope=older.scope, content=older.content)
            change.memory_reinstate(older, actor=actor)
        for older in Memory.objects.select_for_update(no_key=True).filter(pk__in=ended):
            change.times_set(older, {"valid_until": ended[older.pk]}, actor)
        MergeProposal.objects.filter(parts__memory=memory, state=ProposalState.OPEN).delete()
        memory_audit("memory.unapprove", memory, actor)


def checked_text(content: str, embedder: Embedder) -> change.NewText:
    """Return a valid text with its vector. Call it before the transaction: it calls a provider.

    Raises MemoryValidationError, EmbedderError.
    """
    if problems := label_problems(content=content):
        raise MemoryValidationError(problems)
    return change.NewText.made(content, embedder)


def memory_approve_corrected(
    *,
    memory_id: UUID,
    content: str,
    actor: Actor,
    embedder: Embedder,
    seen: str = "",
    ended: Ends | None = None,
) -> Memory:
    """Correct a proposed memory and activate it like ``memory_approve``, both or nothing.

    The earlier text stays as a revision. ``seen``, ``ended``: see ``memory_approve``.
    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, EmbedderError.
    """
    text = checked_text(content, embedder)
    with transaction.atomic(), hooks_gathered():
        memory = _waiting(memory_id, seen)
        change.texts_set(memory, {"content": content}, text=text, actor=actor)
        return memory_approve(memory_id=memory_id, actor=actor, ended=ended)


def memory_reject(
    *, memory_id: UUID, actor: Actor, reason: str = "", seen: str = ""
) -> list[Model]:
    """Delete a memory that waits; return its rows, for ``memory_unreject``.

    ``reason``: a DecisionReason for the audit log. ``seen``: see ``memory_approve``. Raises
    MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        memory = _waiting(memory_id, seen)
        rows = [Memory.objects.get(pk=memory.pk), *memory.tellings.all(), *memory.revisions.all()]
        memory_audit("memory.reject", memory, actor, **({"reason": reason} if reason else {}))
        memory.delete()
    return rows


def memory_unreject(*, rows: Sequence[Any], actor: Actor, keep: Callable[[Memory], None]) -> None:
    """Undo ``memory_reject``: store the rows again, and have the vector made anew.

    ``keep`` is called first; it raises MemoryOperationError if what the memory comes from was
    erased since. Raises MemoryStateError if the memory is there again.
    """
    memory = rows[0].object
    with transaction.atomic(), hooks_gathered():
        scopes_lock([memory.scope])
        keep(memory)
        if Memory.objects.filter(pk=memory.pk).exists():
            raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
        vector_due(memory, None)
        for row in rows:
            row.save()
        vectors_request([memory])
        memory_audit("memory.unreject", memory, actor)


def _waiting(memory_id: UUID, seen: str = "") -> Memory:
    memory = change.memory_locked(memory_id)
    if memory.status != MemoryStatus.PROPOSED:
        text = _("This memory doesn't wait for anybody: it is %(status)s.")
        raise MemoryStateError(text % {"status": gettext(memory.status)})
    if seen and seen != memory.content_hash:
        raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
    return memory
