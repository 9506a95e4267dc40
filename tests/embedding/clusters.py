"""Many memories with made-up vectors: each chat's are in clusters of their own, so that what
a chat may see and what is near to a question go together, or apart."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import connection

from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding
from memories_app.vector_search import index_ensure
from memories_app.visibility import memories_visible

MODEL = "made-up"
A_CLUSTER = 500
# Vectors of texts differ in few directions, not in all of them.
DIRECTIONS = 32
MEMORY_COLUMNS = (
    "memory_id, content, content_hash, type, category, tags, visibility, chat_id, source, "
    "metadata, created_at, updated_at, terms, term_count, status, pinned, told_count, "
    "last_told_at, fact_key, likeness"
)
COPY_MEMORIES = f"COPY {Memory._meta.db_table} ({MEMORY_COLUMNS}) FROM STDIN"
COPY_VECTORS = f"COPY {MemoryEmbedding._meta.db_table} (memory_id, model, vector) FROM STDIN"

Matrix = np.ndarray


class Clusters:
    """Vectors around centres of their own; the same for the same seed."""

    def __init__(self, dimensions: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._dimensions = dimensions

    def of(self, count: int) -> Matrix:
        """So many vectors in new clusters."""
        made: list[Matrix] = []
        for first in range(0, count, A_CLUSTER):
            centre = self._random.normal(size=self._dimensions) / np.sqrt(self._dimensions)
            spread = self._random.normal(size=(DIRECTIONS, self._dimensions))
            near = self._random.normal(size=(min(A_CLUSTER, count - first), DIRECTIONS))
            offsets = near @ spread / np.sqrt(DIRECTIONS * self._dimensions)
            made.append(centre + 0.7 * offsets)
        return units(np.concatenate(made))

    def beside(self, vectors: Matrix, count: int) -> Matrix:
        """Questions: near to some of the vectors, equal to none."""
        some = vectors[self._random.integers(0, len(vectors), size=count)]
        noise = self._random.normal(size=some.shape) / np.sqrt(self._dimensions)
        return units(some + 0.5 * noise)


def units(vectors: Matrix) -> Matrix:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@dataclass
class Filled:
    """A database full of memories. By size of the scope: who sees it (None: the owner, who
    sees all), and where its own memories are in ``vectors``."""

    keys: list[uuid.UUID]
    vectors: Matrix
    chats: dict[int, uuid.UUID | None] = field(default_factory=dict)
    places: dict[int, Matrix] = field(default_factory=dict)

    def scope(self, size: int) -> Any:
        chat = self.chats[size]
        return memories_visible(is_owner=chat is None, is_staff=False, chat_id=chat)

    def nearest(self, size: int, question: Matrix, count: int) -> list[uuid.UUID]:
        """The truth, by brute force."""
        places = self.places[size]
        order = np.argsort(-(self.vectors[places] @ question))[:count]
        return [self.keys[place] for place in places[order]]


def fill(sizes: Sequence[int], total: int, dimensions: int, seed: int = 1) -> Filled:
    """Memories of a chat of each size; the rest of ``total`` is the owner's, who sees all."""
    clusters = Clusters(dimensions, seed)
    parts = [*sizes, total - sum(sizes)]
    vectors = np.concatenate([clusters.of(part) for part in parts])
    filled = Filled([uuid.uuid4() for _ in range(total)], vectors)
    ends = np.cumsum(parts)
    for size, end in zip(sizes, ends, strict=False):
        filled.chats[size] = uuid.uuid4()
        filled.places[size] = np.arange(end - size, end)
    filled.chats[total] = None
    filled.places[total] = np.arange(total)
    owners = np.searchsorted(ends, np.arange(total), side="right")
    seen_by = [*(filled.chats[size] for size in sizes), None]
    # As they came in: mixed.
    order = np.random.default_rng(seed).permutation(total)
    with connection.cursor() as cursor:
        with cursor.copy(COPY_MEMORIES) as copy:
            for place in order:
                chat = seen_by[owners[place]]
                seen = ("{}", "chat" if chat else "owner", chat, "", "{}", "now", "now", "{}", 0)
                text = f"text {place} " * 10
                told = ("active", False, 1, "now", str(place), "{}")
                copy.write_row((filled.keys[place], text, "", "fact", "", *seen, *told))
        with cursor.copy(COPY_VECTORS) as copy:
            for place in order:
                numbers = ",".join(f"{number:.6f}" for number in vectors[place])
                copy.write_row((filled.keys[place], MODEL, f"[{numbers}]"))
    return filled


def index(dimensions: int) -> EmbeddingModel:
    """The model's row and its index, and what PostgreSQL should know of the tables."""
    model = EmbeddingModel.objects.create(
        model_id=MODEL,
        kind="none",
        dimensions=dimensions,
        state="active",
        calibration_midpoint=0.31,
        calibration_slope=10,
    )
    index_ensure(model=model)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if not connection.in_atomic_block else "ANALYZE")
    return model


def empty() -> None:
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE memories_app_memory, memories_app_embeddingmodel CASCADE")
