"""Resolve two memories directly: merge them, keep both, or resolve a contradiction."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memories_app.errors import MemoryNotFoundError, MemoryStateError
from memories_app.models import Memory, MemoryStatus, ProposalKind, ProposalState, RevisionReason
from memories_app.review.decide_proposals import Text, accept_locked, contents_stamp, decide_locked
from memories_app.store.facade import (
    memory_get,
    memory_reinstate,
    memory_supersede,
    proposal_reopen,
    refuse_duplicate,
    scopes_lock,
)
from memoryproject.foundation.audit.audit_events import Actor
from memoryproject.foundation.integrations.embedders.base import Embedder
from memoryproject.foundation.outgoing_webhooks.webhook_events import hooks_gathered

# The choices for an older memory and the newer one that superseded it.
OLDER, BOTH = "older", "both"


def memories_merge(
    *, kept_id: UUID, other_id: UUID, actor: Actor, embedder: Embedder, seen: str = ""
) -> Memory:
    """Merge two active memories of a scope: the first stays and supersedes the other.

    ``seen``: see ``proposal_accept``.

    Raises MemoryNotFoundError, MemoryStateError, EmbedderError; nothing is changed then.
    """
    text = Text.made(memory_get(kept_id).content, embedder)
    with transaction.atomic(), hooks_gathered():
        kept, other = _active_pair(kept_id, other_id, seen)
        if kept.content != text.content:
            raise _changed()
        proposal = proposal_reopen(
            kind=ProposalKind.MERGE, memories=[kept, other], content=kept.content, similarity=1.0
        )
        return accept_locked(proposal, [kept, other], text, actor)


def memories_keep_both(*, one_id: UUID, other_id: UUID, actor: Actor, seen: str = "") -> None:
    """Keep two similar memories as two facts: no merge is proposed any more.

    Raises MemoryNotFoundError, MemoryStateError.
    """
    with transaction.atomic():
        one, other = _active_pair(one_id, other_id, seen)
        proposal = proposal_reopen(
            kind=ProposalKind.MERGE, memories=[one, other], content=one.content, similarity=1.0
        )
        decide_locked(proposal, ProposalState.DISMISSED, actor)


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
            memory_supersede(
                older=newer,
                newer=older,
                reason=RevisionReason.SUPERSEDED,
                actor=actor,
                at=timezone.now(),
            )
        older.status = MemoryStatus.ACTIVE
        refuse_duplicate(older, scope=older.scope, content=older.content)
        memory_reinstate(older, actor=actor)
    return older


def _active_pair(one_id: UUID, other_id: UUID, seen: str) -> tuple[Memory, Memory]:
    """Return both memories locked. Refuse them if they can't be merged any more."""
    one, other = _locked_pair(one_id, other_id)
    active = all(memory.status == MemoryStatus.ACTIVE for memory in (one, other))
    if not active or one.scope != other.scope:
        raise MemoryStateError(
            _("One of these memories isn't active any more, or is seen by others now. Look again.")
        )
    if seen and seen != contents_stamp([one, other]):
        raise _changed()
    return one, other


def _changed() -> MemoryStateError:
    return MemoryStateError(_("Somebody changed one of these memories meanwhile. Look again."))


def _locked_pair(one_id: UUID, other_id: UUID) -> tuple[Memory, Memory]:
    if one_id == other_id:
        raise MemoryStateError(_("This is one memory."))
    rows = Memory.objects.filter(pk__in=[one_id, other_id])
    scopes_lock(rows.values_list("scope", flat=True))
    found = {
        memory.pk: memory for memory in rows.select_for_update(no_key=True).order_by("memory_id")
    }
    for key in (one_id, other_id):
        if key not in found:
            raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": key})
    return found[one_id], found[other_id]
