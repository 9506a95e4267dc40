"""Measures what the approximate index finds and how long it takes: run from the project's root.

    python benchmarks/measure_index.py [--memories 100000] [--questions 50] [--dimensions 256]

Fills a database of its own, in a temporary folder, with made-up vectors in clusters. Each chat
has clusters of its own, so what a chat may see and what is near to a question go together, or
apart: the hard case for an index is a question about what only others may see. For scopes of
10 to all memories it prints the share of the truly nearest ten among the first ten (median
and worst question), and milliseconds, beside those of an exact search.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
_FOLDER = Path(tempfile.mkdtemp(prefix="index-benchmark-"))
os.environ |= {
    "DATA_DIR": str(_FOLDER / "data"),
    "LOG_DIR": str(_FOLDER / "logs"),
    "DATABASE_URL": "",
    "DJANGO_SETTINGS_MODULE": "memoryproject.settings",
}

import django  # noqa: E402 the settings read the environment

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.db.models import QuerySet  # noqa: E402

from memories_app.models import EmbeddingModel, Memory, MemoryEmbedding  # noqa: E402
from memories_app.nearest import nearest_by_index, nearest_exactly, nearest_keys  # noqa: E402
from memories_app.selectors import memories_visible  # noqa: E402
from memories_app.services.vector_index import index_ensure  # noqa: E402
from memoryproject.postgres import EmbeddedPostgres  # noqa: E402

MODEL = "made-up"
SIZES = (10, 100, 1_000, 3_000, 10_000, 30_000)
A_CLUSTER = 500
# Vectors of texts differ in few directions, not in all of them.
DIRECTIONS = 32
WANTED = 10
CANDIDATES = 100
# The default embedder's calibration: cosines of 0.31 are as likely about one matter as not.
NEAR = 0.31


class Clusters:
    """Vectors around centres of their own."""

    def __init__(self, dimensions: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._dimensions = dimensions

    def of(self, count: int) -> np.ndarray:
        """So many vectors in new clusters."""
        made: list[np.ndarray] = []
        for first in range(0, count, A_CLUSTER):
            centre = self._random.normal(size=self._dimensions) / np.sqrt(self._dimensions)
            spread = self._random.normal(size=(DIRECTIONS, self._dimensions))
            near = self._random.normal(size=(min(A_CLUSTER, count - first), DIRECTIONS))
            offsets = near @ spread / np.sqrt(DIRECTIONS * self._dimensions)
            made.append(centre + 0.7 * offsets)
        vectors = np.concatenate(made)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def beside(self, vectors: np.ndarray, count: int) -> np.ndarray:
        """Questions: near to some of the vectors, equal to none."""
        some = vectors[self._random.integers(0, len(vectors), size=count)]
        noise = self._random.normal(size=some.shape) / np.sqrt(self._dimensions)
        asked = some + 0.5 * noise
        return asked / np.linalg.norm(asked, axis=1, keepdims=True)


def fill(total: int, dimensions: int) -> tuple[dict[int, uuid.UUID], dict[int, np.ndarray]]:
    """Memories of chats of all sizes, the rest the owner's; the chats and their vectors."""
    call_command("migrate", verbosity=0)
    clusters = Clusters(dimensions, seed=1)
    sizes = [size for size in SIZES if sum(s for s in SIZES if s <= size) < total]
    chats = {size: uuid.uuid4() for size in sizes}
    vectors = {size: clusters.of(size) for size in sizes}
    vectors[total] = clusters.of(total - sum(sizes))
    rows = [(chats.get(size), vector) for size, found in vectors.items() for vector in found]
    # As they came in: mixed.
    order = np.random.default_rng(2).permutation(len(rows))
    with connection.cursor() as cursor:
        keys = [uuid.uuid4() for _ in rows]
        columns = "memory_id, content, content_hash, type, category, tags, visibility, chat_id,"
        columns += " source, metadata, created_at, updated_at, terms, term_count"
        with cursor.copy(f"COPY memories_app_memory ({columns}) FROM STDIN") as copy:
            for place in order:
                chat = rows[place][0]
                seen = "chat" if chat else "owner"
                values = ("{}", seen, chat, "", "{}", "now", "now", "{}", 0)
                copy.write_row((keys[place], "text " * 20, "", "fact", "", *values))
        with cursor.copy(
            "COPY memories_app_memoryembedding (memory_id, model, vector) FROM STDIN"
        ) as copy:
            for place in order:
                numbers = ",".join(f"{number:.6f}" for number in rows[place][1])
                copy.write_row((keys[place], MODEL, f"[{numbers}]"))
    return chats, vectors


def build_index(dimensions: int) -> float:
    """Seconds."""
    model = EmbeddingModel.objects.create(
        model_id=MODEL,
        kind="none",
        dimensions=dimensions,
        state="active",
        calibration_midpoint=0.3,
        calibration_slope=10,
    )
    started = time.perf_counter()
    index_ensure(model=model)
    taken = time.perf_counter() - started
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return taken


def measure(scope: QuerySet[Memory], asked: np.ndarray, name: str) -> None:
    """One line: what is found and how fast."""

    def search(question: Sequence[float]) -> list[uuid.UUID]:
        return nearest_keys(
            scope=scope,
            vectors=MemoryEmbedding,
            key="memory",
            model=MODEL,
            asked=[question],
            limit=CANDIDATES,
            near=NEAR,
        )

    def exact(question: Sequence[float]) -> list[uuid.UUID]:
        return nearest_exactly(
            scope=scope,
            vectors=MemoryEmbedding,
            key="memory",
            model=MODEL,
            asked=[question],
            limit=CANDIDATES,
        )

    def index_alone(question: Sequence[float]) -> list[uuid.UUID]:
        return nearest_by_index(
            scope=scope, key="memory", model=MODEL, asked=[question], limit=CANDIDATES
        )

    shares, alone, fast, slow = [], [], [], []
    for vector in asked:
        question = vector.tolist()
        search(question)
        found, seconds = timed(search, question)
        truth, exactly = timed(exact, question)
        # The candidates are scored afterwards: what counts is whether the ten are among them.
        best = set(truth[:WANTED])
        shares.append(len(best & set(found)) / len(best))
        alone.append(len(best & set(index_alone(question))) / len(best))
        fast.append(seconds * 1000)
        slow.append(exactly * 1000)
    print(
        f"  {name:28} recall@10 mean {statistics.fmean(shares):.4f} worst {min(shares):.2f}   "
        f"ms {statistics.median(fast):6.1f} (p95 {p95(fast):6.1f})   "
        f"exact {statistics.median(slow):6.1f} (p95 {p95(slow):6.1f})   "
        f"index alone {statistics.fmean(alone):.4f}",
        flush=True,
    )


def timed(
    search: Callable[[Sequence[float]], list[uuid.UUID]], question: Sequence[float]
) -> tuple[list[uuid.UUID], float]:
    started = time.perf_counter()
    found = search(question)
    return found, time.perf_counter() - started


def p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]


def main() -> None:
    """Fills, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000, help="memories in all")
    parser.add_argument("--questions", type=int, default=50, help="questions a line")
    parser.add_argument("--dimensions", type=int, default=256, help="of the vectors")
    options = parser.parse_args()
    try:
        chats, vectors = fill(options.memories, options.dimensions)
        seconds = build_index(options.dimensions)
        print(
            f"{options.memories} memories of {options.dimensions} dimensions, index built in "
            f"{seconds:.0f} s; {os.cpu_count()} cores, {platform.machine()}, Python "
            f"{platform.python_version()}, PostgreSQL {connection.pg_version // 10_000}, "
            f"load of the machine {os.getloadavg()[0]:.1f}"
        )
        asking = Clusters(options.dimensions, seed=3)
        everything = np.concatenate(list(vectors.values()))
        for size, own in vectors.items():
            owner = size not in chats
            scope = memories_visible(is_owner=owner, is_staff=False, chat_id=chats.get(size))
            print(f"scope of {scope.count()} memories")
            measure(scope, asking.beside(own, options.questions), "asked about its own")
            others = everything if owner else vectors[options.memories]
            measure(scope, asking.beside(others, options.questions), "asked about others'")
            measure(scope, asking.of(options.questions), "asked about neither")
    finally:
        connections.close_all()
        EmbeddedPostgres(Path(os.environ["DATA_DIR"])).release()
        shutil.rmtree(_FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
