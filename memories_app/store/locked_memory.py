"""Load memories and lock them against concurrent changes and comparisons."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from memories_app.errors import DuplicateFactError, MemoryNotFoundError, MemoryStateError
from memories_app.facts.facade import fact_key, likeness_of
from memories_app.models import Memory, MemoryStatus
from memories_app.store.duplicate_lookup import KnownFacts
from memories_app.store.scope_locks import scopes_lock


def memory_get(memory_id: UUID) -> Memory:
    """Return the memory. Raises MemoryNotFoundError."""
    memory = Memory.objects.filter(pk=memory_id).first()
    if memory is None:
        raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": memory_id})
    return memory


def memory_locked(memory_id: UUID, *, also: str = "") -> Memory:
    """Return the memory, locked until the transaction ends with its scope and ``also``.

    Raises MemoryNotFoundError, and MemoryStateError if its scope changed meanwhile.
    """
    scope = memory_get(memory_id).scope
    scopes_lock([scope, also or scope])
    memory = Memory.objects.select_for_update(no_key=True).filter(pk=memory_id).first()
    if memory is None:
        raise MemoryNotFoundError(_("There is no memory %(id)s.") % {"id": memory_id})
    if memory.scope != scope:
        raise MemoryStateError(_("Somebody else changed who may see this memory. Try again."))
    return memory


def refuse_duplicate(memory: Memory, *, scope: str, content: str) -> None:
    """Raise DuplicateFactError if another active memory of the scope states this.

    An inactive memory is not checked.
    """
    if memory.status != MemoryStatus.ACTIVE:
        return
    key, likeness = fact_key(content), likeness_of(content)
    known = KnownFacts.load(scopes=[scope], likenesses=[likeness], fact_keys=[key])
    for same in known.all_same(scope, key, likeness):
        if same.pk != memory.pk:
            raise DuplicateFactError(same.pk)
