"""Find the memories that new ones duplicate or contradict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models.expressions import RawSQL

from memories_app.facts.facade import Likeness, is_replaced, likeness_of, subject_keys
from memories_app.models import Memory, MemoryStatus

# A thousand texts have thousands of keys, and the planner often has old figures about the table: by
# these it would read the whole scope, and compare each row with each key. So it sees neither the
# keys nor the scope where it chooses how to find the rows.
_MEMORIES = Memory._meta.db_table
_SAME_KEY = f"""
    SELECT same.memory_id FROM unnest(%s::varchar[]) AS wanted(key), LATERAL (
        SELECT memory_id FROM {_MEMORIES} WHERE fact_key = wanted.key AND scope = ANY(%s::text[])
        AND document_id IS NULL AND status {{status}} OFFSET 0) AS same
"""  # noqa: S608 constants only
_ALIKE = f"""
SELECT unnest(ARRAY(
    WITH alike AS MATERIALIZED (
        SELECT memory_id, scope, status, document_id FROM {_MEMORIES}
        WHERE likeness && ARRAY(SELECT unnest(%s::varchar[]))
    )
    SELECT memory_id FROM alike WHERE document_id IS NULL
        AND scope = ANY(%s::text[]) AND status = ANY(%s::varchar[])
    UNION {_SAME_KEY.format(status="= 'active'")} {{more}}
))
"""  # noqa: S608 constants only
_ACTIVE = _ALIKE.format(more="")
# Few memories are proposed, and they have an index of their own.
_WITH_PROPOSED = _ALIKE.format(more="UNION" + _SAME_KEY.format(status="= 'proposed'"))


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
        subjects: Iterable[str] = (),
        statuses: Collection[str] = (MemoryStatus.ACTIVE,),
    ) -> KnownFacts:
        """Load the memories that share a key with any of the texts."""
        keys = {key for likeness in likenesses for key in likeness.keys}
        keys |= {key for subject in subjects for key in subject_keys(subject)}
        likeness_keys = sorted(keys)
        wanted = sorted(set(scopes))
        same_key = [sorted(set(fact_keys)), wanted]
        parameters = [likeness_keys, wanted, [str(each) for each in statuses], *same_key]
        alike = RawSQL(_ACTIVE, parameters)  # noqa: S611 constants only
        if MemoryStatus.PROPOSED in statuses:
            alike = RawSQL(_WITH_PROPOSED, [*parameters, *same_key])  # noqa: S611 constants only
        found = Memory.objects.filter(pk__in=alike)
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

    def replaced(
        self, scope: str, likeness: Likeness, now: datetime, subject: str = ""
    ) -> list[Memory]:
        """Return the unexpired memories that contradict this statement.

        Those about the same subject contradict it whatever they say.
        """
        about = subject_keys(subject)
        found = {
            memory.pk: memory
            for key in (*likeness.keys, *about)
            for memory in self._by_key[scope, key]
            if memory.status == MemoryStatus.ACTIVE
            and not (memory.expires_at and memory.expires_at <= now)
        }
        return [
            memory
            for memory in found.values()
            if any(key in memory.likeness for key in about)
            or is_replaced(newer=likeness, older=likeness_of(memory.content))
        ]
