"""Inspect the vectors of the model in use, and make wrong ones again (RECOVERY-002)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F, Func, IntegerField, Model
from pgvector.django import CosineDistance

from memories_app.embedding_models.facade import memories_lacking, vectors_delete
from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding
from memories_app.search.facade import (
    Vector,
    cast_of,
    index_drop,
    index_state,
    nearest_by_index,
    nearest_exactly,
)
from memoryproject.foundation.integrations.embedders.base import Embedder, EmbedderError
from sessions_app.embedding.exclusive import reembed_lock
from sessions_app.embedding.maintenance import VECTORS, indexes_ensure
from sessions_app.embedding.message_vectors import messages_lacking
from sessions_app.models import Message, MessageEmbedding

# Number of memories that are embedded again and searched by the index.
SAMPLE = 20
# The same text gives the same vector except for the last digits, in which servers may differ.
SAME = 0.99
# An index is approximate, most of all where many texts are alike, but not as much as this.
FAR = 0.3
# Even a complete index misses a few texts if many are at the same distance from each other. An
# index that lost entries misses most.
MAX_ASTRAY = 0.2


@dataclass
class Inspection:
    """The result of an inspection.

    ``memories`` and ``messages`` count vectors. ``…_without`` count texts without a vector,
    including those that the model doesn't cover. ``astray``: the number of sampled memories,
    out of ``looked_from``, for which the index returned distant results. ``problems``: the
    faults, in words.
    """

    model: str
    memories: int
    memories_without: int
    messages: int
    messages_without: int
    index: str
    looked_from: int = 0
    astray: int = 0
    problems: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def embeddings_inspect(*, model: EmbeddingModel, embedder: Embedder) -> Inspection:
    """Inspect the model's vectors and index. Changes nothing."""
    of_model = {"model": model.model_id}
    state = index_state(model.model_id)
    found = Inspection(
        model=model.model_id,
        memories=MemoryEmbedding.objects.filter(**of_model).count(),
        memories_without=memories_lacking(model.model_id).count(),
        messages=MessageEmbedding.objects.filter(**of_model).count(),
        messages_without=messages_lacking(Message.objects.all(), model.model_id).count(),
        index="valid" if state.valid else "broken" if state.exists else "missing",
    )
    for table in VECTORS:
        of_table = index_state(model.model_id, table)
        if not of_table.valid and cast_of(model.dimensions, table) is not None:
            broken = "broken" if of_table.exists else "missing"
            found.problems.append(f"The index {of_table.name} is {broken}.")
        wrong = _of_wrong_size(table, model)
        if wrong:
            found.problems.append(f"{wrong} vectors of {table._meta.db_table} have a wrong size.")
    if not found.problems:
        found.problems += _differing(model, embedder)
    if not found.problems and state.valid:
        _look_by_index(model, found)
    return found


def _of_wrong_size(table: type[Model], model: EmbeddingModel) -> int:
    rows = table._default_manager.filter(model=model.model_id)
    size = Func(F("vector"), function="vector_dims", output_field=IntegerField())
    return rows.annotate(size=size).exclude(size=model.dimensions).count()


def _sample(model: EmbeddingModel) -> list[tuple[Any, str, Sequence[float]]]:
    """Return a sample of memories: keys, texts and vectors."""
    rows = MemoryEmbedding.objects.filter(model=model.model_id).order_by("?")[:SAMPLE]
    return list(rows.values_list("memory_id", "memory__content", "vector"))


def _differing(model: EmbeddingModel, embedder: Embedder) -> list[str]:
    """Return a problem if stored vectors don't match the stored texts."""
    sample = _sample(model)
    try:
        again = embedder.embed([text for _, text, _ in sample]) if sample else []
    except EmbedderError as error:
        return [f"The model can't be asked: {error}"]
    other = sum(
        math.fsum(a * b for a, b in zip(map(float, stored), fresh, strict=True)) < SAME
        for (_, _, stored), fresh in zip(sample, again, strict=True)
    )
    return [f"{other} of {len(sample)} vectors aren't those of their texts."] if other else []


def _look_by_index(model: EmbeddingModel, found: Inspection) -> None:
    """Check that the index finds the nearest vectors."""
    sample = _sample(model)
    try:
        with transaction.atomic():
            found.astray = sum(_is_misled(key, vector, model) for key, _, vector in sample)
    except DatabaseError as error:
        found.problems.append(f"The index can't be read: {error}".strip())
        return
    found.looked_from = len(sample)
    if found.astray > MAX_ASTRAY * len(sample):
        found.problems.append(
            f"The index leads astray from {found.astray} of {len(sample)} memories."
        )


def _is_misled(key: Any, vector: Vector, model: EmbeddingModel) -> bool:
    """Return whether the index's results are far from the true nearest neighbours."""
    everywhere: dict[str, Any] = {
        "scope": Memory.objects.all(),
        "model": model.model_id,
        "queries": [vector],
        "limit": 2,
    }
    truth = nearest_exactly(**everywhere)
    by_index = nearest_by_index(**everywhere)
    rows = MemoryEmbedding.objects.filter(memory_id__in=[*truth, *by_index], model=model.model_id)
    distances = dict(rows.values_list("memory_id", CosineDistance("vector", list(vector))))

    def beside(found: Sequence[Any]) -> float:
        return min((distances[other] for other in found if other != key), default=math.inf)

    return beside(by_index) - FAR > beside(truth)


def index_rebuild(*, model: EmbeddingModel) -> bool:
    """Rebuild the model's index; recall is exact meanwhile.

    Returns False if the model can have no index. Raises ReembedRunningError.
    """
    with reembed_lock():
        for table in VECTORS:
            index_drop(model_id=model.model_id, table=table)
        return bool(indexes_ensure(model))


def vectors_drop(*, model: EmbeddingModel, embedder: Embedder) -> int:
    """Remove the model's index and all its vectors; return how many.

    ``reembed`` then makes them again from the stored texts. Recall uses words until then.

    The embedder's current dimensions are recorded. Raises ReembedRunningError, EmbedderError.
    """
    dimensions = embedder.dimensions
    with reembed_lock():
        removed = 0
        for table in VECTORS:
            index_drop(model_id=model.model_id, table=table)
            removed += vectors_delete(table=table, model_id=model.model_id)
        model.dimensions = dimensions
        model.save(update_fields=["dimensions"])
    return removed
