"""Propose decisions about similar memories to staff."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from operator import mul
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from memories_app.models import (
    Memory,
    MemoryEmbedding,
    MemoryStatus,
    MergeProposal,
    ProposalKind,
    ProposalMemory,
    ProposalState,
)
from memories_app.vector_search import nearest_keys
from memories_app.visibility import is_current
from memoryproject.foundation.integrations.embedders.base import Calibration


def alike_key(kind: str, memory_ids: Sequence[UUID]) -> str:
    """Return a key for a proposal about these memories, independent of their order."""
    text = " ".join([kind, *sorted(map(str, memory_ids))])
    return hashlib.sha256(text.encode()).hexdigest()


def replacement_propose(*, newer: Memory, older: Memory) -> None:
    """Propose that ``newer`` supersedes ``older``, which is pinned or may be true beside it."""
    proposal_add(
        kind=ProposalKind.REPLACE, memories=[newer, older], content=newer.content, similarity=1.0
    )


def proposal_add(
    *, kind: str, memories: Sequence[Memory], content: str, similarity: float
) -> MergeProposal | None:
    """Create a proposal about these memories; the memory that stays comes first.

    Return None if there was a proposal about them before, whatever its decision.
    """
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
    """Return the proposal about these memories, open and locked, even if it was decided before.

    It is used when staff ask for the proposal themselves. Call it in a transaction.
    """
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


# Store what a mention or a newer memory changes in many memories, with one statement.

_CHANGED = {
    "told_count": "int",
    "last_told_at": "timestamptz",
    "expires_at": "timestamptz",
    "said_at": "timestamptz",
    "valid_from": "timestamptz",
    "valid_until": "timestamptz",
    "status": "varchar",
    "superseded_at": "timestamptz",
    "updated_at": "timestamptz",
}
# Django's bulk_update takes longer for ten rows than PostgreSQL for a thousand.
_CHANGE = f"""
UPDATE {Memory._meta.db_table} AS memory
SET {", ".join(f"{name} = given.{name}" for name in _CHANGED)}
FROM unnest(%s::uuid[], {", ".join(f"%s::{kind}[]" for kind in _CHANGED.values())})
    AS given(memory_id, {", ".join(_CHANGED)})
WHERE memory.memory_id = given.memory_id
"""  # noqa: S608 constants only


def changes_store(memories: Sequence[Memory]) -> None:
    """Store the fields that a mention or a newer memory changes."""
    if not memories:
        return
    columns: list[list[Any]] = [[getattr(each, name) for each in memories] for name in _CHANGED]
    columns[list(_CHANGED).index("status")] = [str(each.status) for each in memories]
    with connection.cursor() as cursor:
        cursor.execute(_CHANGE, [[each.pk for each in memories], *columns])


# Ask staff about memories whose value a newer one seems to renew, by their meaning.


# Of a larger batch only so many are compared: each needs a search.
MAX_COMPARED = 20
MIN_PROBABILITY = 0.8


def renewals_propose(
    created: Sequence[tuple[Memory, Sequence[float]]], *, model_id: str, calibration: Calibration
) -> None:
    """Propose the replacement of the memory that is nearest to each new one, where it is near.

    ``created``: memories that say that their value is a new one, with their vectors.
    """
    for memory, vector in created[:MAX_COMPARED]:
        others = Memory.objects.filter(
            is_current(timezone.now()),
            visibility=memory.visibility,
            chat_id=memory.chat_id,
            status=MemoryStatus.ACTIVE,
            document__isnull=True,
            valid_until__isnull=True,
            said_at__lte=memory.said_at,
        ).exclude(pk=memory.pk)
        near = nearest_keys(scope=others, model=model_id, queries=[vector], limit=1, sure=False)
        rows = MemoryEmbedding.objects.filter(model=model_id, memory__in=near)
        for older in rows.select_related("memory"):
            cosine = sum(map(mul, vector, older.vector))
            odds = math.exp(calibration.slope * (cosine - calibration.midpoint))
            if odds / (1 + odds) >= MIN_PROBABILITY:
                replacement_propose(newer=memory, older=older.memory)
