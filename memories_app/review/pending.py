"""Decide about memories that wait for staff."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from memories_app.errors import MemoryStateError, MemoryValidationError
from memories_app.facts.facts import likeness_of, speakers_in
from memories_app.facts.validation import label_problems
from memories_app.facts.validity import Validity
from memories_app.models import Memory, MemoryStatus, RevisionReason
from memories_app.store.change import NewText, memory_locked, memory_supersede, texts_set, times_set
from memories_app.store.duplicate_lookup import Claim, KnownFacts, last_before, replacement_propose
from memories_app.store.memory_fields import memory_audit
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.outgoing_webhooks.deliveries import hooks_gathered

# Counting goes no further.
MAX_COUNTED = 1_000


def proposed_count() -> int:
    """Return how many memories wait for staff, at most MAX_COUNTED."""
    return Memory.objects.filter(status=MemoryStatus.PROPOSED)[:MAX_COUNTED].count()


def memory_approve(*, memory_id: UUID, actor: Actor, seen: str = "") -> Memory:
    """Activate a proposed memory, as if it were mentioned now; return the active memory.

    If the fact is known already, the known memory is mentioned again. Memories that it
    contradicts are superseded, or end when it begins to hold. ``seen``: the hash of the content as
    staff read it; the call is refused if the content changed since. Raises MemoryNotFoundError,
    MemoryStateError.
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
            memory_supersede(older=memory, newer=same, actor=actor, reason=RevisionReason.MERGED)
            return same
        validity = Validity(memory.valid_from, memory.valid_until)
        speakers = frozenset(speakers_in(memory.likeness))
        claim = Claim(likeness, memory.said_at, validity, chat_id=memory.chat_id, speakers=speakers)
        found = known.contradicted(memory.scope, claim, now)
        for older in (*found.replaced, *found.ending, *found.unsure):
            if older.pinned or older in found.unsure:
                replacement_propose(newer=memory, older=older)
            elif older in found.ending:
                times_set(memory_locked(older.pk), {"valid_until": last_before(memory)}, actor)
            else:
                memory_supersede(older=older, newer=memory, actor=actor)
        memory.status = MemoryStatus.ACTIVE
        memory.save(update_fields=["status", "updated_at"])
        memory_audit("memory.approve", memory, actor)
    return memory


def checked_text(content: str, embedder: Embedder) -> NewText:
    """Return a valid text with its vector. Call it before the transaction: it calls a provider.

    Raises MemoryValidationError, EmbedderError.
    """
    if problems := label_problems(content=content):
        raise MemoryValidationError(problems)
    return NewText.made(content, embedder)


def memory_approve_corrected(
    *, memory_id: UUID, content: str, actor: Actor, embedder: Embedder, seen: str = ""
) -> Memory:
    """Correct a proposed memory and activate it like ``memory_approve``, both or nothing.

    The earlier text stays as a revision. ``seen``: see ``memory_approve``.
    Raises MemoryValidationError, MemoryNotFoundError, MemoryStateError, EmbedderError.
    """
    text = checked_text(content, embedder)
    with transaction.atomic(), hooks_gathered():
        memory = _waiting(memory_id, seen)
        texts_set(memory, {"content": content}, text=text, actor=actor)
        return memory_approve(memory_id=memory_id, actor=actor)


def memory_reject(*, memory_id: UUID, actor: Actor, reason: str = "", seen: str = "") -> None:
    """Delete a memory that waits. ``reason``: a DecisionReason for the audit log.

    ``seen``: see ``memory_approve``. Raises MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        memory = _waiting(memory_id, seen)
        memory_audit("memory.reject", memory, actor, **({"reason": reason} if reason else {}))
        memory.delete()


def _waiting(memory_id: UUID, seen: str = "") -> Memory:
    memory = memory_locked(memory_id)
    if memory.status != MemoryStatus.PROPOSED:
        text = _("This memory doesn't wait for anybody: it is %(status)s.")
        raise MemoryStateError(text % {"status": gettext(memory.status)})
    if seen and seen != memory.content_hash:
        raise MemoryStateError(_("Somebody else changed this memory. Look, and try again."))
    return memory
