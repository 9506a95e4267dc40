"""Say what storing memories would do, without storing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memories_app.facts.facade import NewMemory, fact_key, likeness_of
from memories_app.models import Memory
from memories_app.search.facade import scope_of
from memories_app.store.duplicate_lookup import Claim, Contradicted, KnownFacts
from memories_app.store.memory_fields import validity_given


@dataclass(frozen=True)
class Foreseen:
    """The outcome that storing a memory would have.

    ``same``: the memory that states it already and counts. ``replaced``: those whose place it
    would take. ``pinned``: those that say otherwise, and about which staff would be asked.
    """

    same: Memory | None = None
    replaced: tuple[Memory, ...] = ()
    pinned: tuple[Memory, ...] = ()


def memories_foresee(memories: Sequence[NewMemory], *, now: datetime) -> list[Foreseen]:
    """Return for each memory what storing it would do, in a constant number of queries.

    Each is looked at on its own: what one of them says about another isn't seen.
    """
    scopes = [scope_of(new.visibility, new.chat_id) for new in memories]
    likenesses = [likeness_of(new.content) for new in memories]
    keys = [fact_key(new.content) for new in memories]
    known = KnownFacts.load(
        scopes=scopes,
        likenesses=likenesses,
        fact_keys=keys,
        subjects=[new.subject for new in memories],
    )
    foreseen = []
    for new, scope, likeness, key in zip(memories, scopes, likenesses, keys, strict=True):
        same = known.same(scope, key, likeness)
        # Storing what has ended puts it in force again.
        if same is not None and not (same.expires_at and same.expires_at <= now):
            foreseen.append(Foreseen(same=same))
            continue
        said_at = new.said_at or now
        claim = Claim.of(new, likeness, said_at, validity_given(new, said_at))
        found = Contradicted() if same else known.contradicted(scope, claim, now)
        older = [*found.replaced, *found.ending]
        foreseen.append(
            Foreseen(
                replaced=tuple(each for each in older if not each.pinned),
                pinned=tuple(each for each in older if each.pinned),
            )
        )
    return foreseen
