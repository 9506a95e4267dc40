"""Find the memories of the same scope that are most similar to a memory.

Staff decide whether to merge them; this module decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from memories_app.facts.text_diff import shape_of
from memories_app.models import (
    EmbeddingModel,
    EmbeddingState,
    Memory,
    MemoryEmbedding,
    MemoryStatus,
    MergeProposal,
    ProposalKind,
    ProposalState,
)
from memories_app.store.duplicate_lookup import alike_key
from memories_app.vector_search import any_of, nearest_keys
from memories_app.visibility import is_current

# The number of candidates by vector, and by words.
LOOKED_AT = 20
# A shown memory reaches one of these thresholds.
SIMILAR_COSINE = 0.6
SIMILAR_SHARE = 0.4


@dataclass(frozen=True)
class SimilarMemory:
    """A similar memory. ``similarity`` is the cosine, None if one of both has no vector.

    ``shared``: the share of common content words. ``kept_apart``: staff decided that it is
    another fact.
    """

    memory: Memory
    similarity: float | None
    shared: float
    kept_apart: bool = False


def similar_memories_find(memory: Memory, *, most: int = 5) -> list[SimilarMemory]:
    """Return active memories, the most similar first; none for an inactive memory.

    The number of queries is constant.
    """
    if memory.status != MemoryStatus.ACTIVE:
        return []
    others = Memory.objects.filter(
        is_current(timezone.now()), scope=memory.scope, status=MemoryStatus.ACTIVE
    ).exclude(pk=memory.pk)
    model = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
    rows = MemoryEmbedding.objects.filter(model=model.model_id if model else "")
    own = rows.filter(memory=memory).values_list("vector", flat=True).first()
    keys: list[UUID] = list(
        others.filter(likeness__overlap=memory.likeness).values_list("pk", flat=True)[:LOOKED_AT]
    )
    if own is not None and model is not None:
        keys += _nearest(others, model, list(own))
    vectors = dict(rows.filter(memory__in=any_of(keys)).values_list("memory_id", "vector"))
    return _ranked(memory, others, keys, own, vectors)[:most]


def _nearest(others: QuerySet[Memory], model: EmbeddingModel, own: Sequence[float]) -> list[UUID]:
    return nearest_keys(
        scope=others,
        model=model.model_id,
        queries=[own],
        limit=LOOKED_AT,
        sure=False,
    )


def _ranked(
    memory: Memory,
    others: QuerySet[Memory],
    keys: Sequence[UUID],
    own: Sequence[float] | None,
    vectors: dict[UUID, Sequence[float]],
) -> list[SimilarMemory]:
    shape = shape_of(memory.content)
    found = list(others.filter(pk__in=any_of(keys)).defer("terms", "likeness"))
    apart = _kept_apart(memory, found)
    near = [
        SimilarMemory(
            other,
            None if own is None or other.pk not in vectors else _cosine(own, vectors[other.pk]),
            shape.shared(shape_of(other.content)),
            other.pk in apart,
        )
        for other in found
    ]
    shown = [
        one
        for one in near
        if (one.similarity or 0) >= SIMILAR_COSINE or one.shared >= SIMILAR_SHARE
    ]
    return sorted(shown, key=lambda one: (-(one.shared + (one.similarity or 0)), one.memory.pk))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors. Stored vectors are unit vectors, or normalised here."""
    product = sum(float(a) * float(b) for a, b in zip(one, other, strict=True))
    lengths = sum(float(a) ** 2 for a in one) * sum(float(b) ** 2 for b in other)
    return float(product / lengths**0.5)


def _kept_apart(memory: Memory, others: Sequence[Memory]) -> set[UUID]:
    by_key = {alike_key(ProposalKind.MERGE, [memory.pk, other.pk]): other.pk for other in others}
    dismissed = MergeProposal.objects.filter(
        alike_key__in=list(by_key), state=ProposalState.DISMISSED
    )
    return {by_key[key] for key in dismissed.values_list("alike_key", flat=True)}
