"""Find the memories that new ones duplicate or contradict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from memories_app.facts.facade import Likeness, is_replaced, likeness_of
from memories_app.models import Memory, MemoryStatus


class KnownFacts:
    """Active memories of some scopes, indexed by the facts that they state.

    Load it while the scopes are locked; ``add`` keeps it current during the decisions.
    """

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._by_key: dict[tuple[str, str], list[Memory]] = defaultdict(list)
        for memory in memories:
            self.add(memory, memory.scope)

    @classmethod
    def load(
        cls,
        *,
        scopes: Iterable[str],
        likenesses: Iterable[Likeness],
        fact_keys: Iterable[str],
        statuses: Iterable[str] = (MemoryStatus.ACTIVE,),
    ) -> KnownFacts:
        """Load the memories that share a key with any of the texts."""
        keys = {key for likeness in likenesses for key in likeness.keys}
        alike = Q(likeness__overlap=sorted(keys)) | Q(fact_key__in=set(fact_keys))
        memories = Memory.objects.filter(document__isnull=True, status__in=list(statuses))
        found = memories.filter(alike, scope__in=set(scopes))
        return cls(found.order_by("created_at", "memory_id").defer("terms"))

    def add(self, memory: Memory, scope: str) -> None:
        """Add a memory. ``scope`` is given because the database sets it on stored rows only."""
        for key in (memory.fact_key, *memory.likeness):
            self._by_key[scope, key].append(memory)

    def same(
        self, scope: str, fact_key: str, likeness: Likeness, *, proposed: bool = False
    ) -> Memory | None:
        """Return the memory that states this fact. ``proposed``: include proposed ones."""
        found = self.all_same(scope, fact_key, likeness, proposed=proposed)
        return found[0] if found else None

    def all_same(
        self, scope: str, fact_key: str, likeness: Likeness, *, proposed: bool = False
    ) -> list[Memory]:
        """Return all memories that state this fact, those with an equal text first."""
        statuses = {str(MemoryStatus.ACTIVE), *([str(MemoryStatus.PROPOSED)] if proposed else [])}
        return [
            memory
            for key in (fact_key, f"s{likeness.sense}")
            for memory in self._by_key.get((scope, key), ())
            if memory.status in statuses
        ]

    def replaced(self, scope: str, likeness: Likeness, now: datetime) -> list[Memory]:
        """Return the unexpired memories that contradict this statement."""
        found = {
            memory.pk: memory
            for key in likeness.keys
            for memory in self._by_key[scope, key]
            if memory.status == MemoryStatus.ACTIVE
            and not (memory.expires_at and memory.expires_at <= now)
        }
        return [
            memory
            for memory in found.values()
            if is_replaced(newer=likeness, older=likeness_of(memory.content))
        ]
