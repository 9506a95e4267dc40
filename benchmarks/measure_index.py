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
import statistics
import time
import uuid
from collections.abc import Callable, Sequence

import numpy as np
from own_database import machine, own_database

# isort: split


from memories_app.vector_search import nearest_by_index, nearest_exactly, nearest_keys
from tests.embedding.clusters import MODEL, Clusters, Filled, Matrix, fill, index

SIZES = (10, 100, 1_000, 3_000, 10_000, 30_000)
WANTED = 10
CANDIDATES = 100


def measure(filled: Filled, size: int, queries: Matrix, name: str) -> None:
    """One line: what is found and how fast."""
    scope = filled.scope(size)

    def search(question: Sequence[float]) -> list[uuid.UUID]:
        return nearest_keys(scope=scope, model=MODEL, vector=question, limit=CANDIDATES)

    def exact(question: Sequence[float]) -> list[uuid.UUID]:
        return nearest_exactly(scope=scope, model=MODEL, vector=question, limit=CANDIDATES)

    def index_alone(question: Sequence[float]) -> list[uuid.UUID]:
        return nearest_by_index(scope=scope, model=MODEL, vector=question, limit=CANDIDATES)

    shares, alone, fast, slow = [], [], [], []
    for vector in queries:
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
    with own_database():
        sizes = [size for size in SIZES if 2 * size < options.memories]
        filled = fill(sizes, options.memories, options.dimensions)
        started = time.perf_counter()
        index(options.dimensions)
        seconds = time.perf_counter() - started
        print(
            f"{options.memories} memories of {options.dimensions} dimensions, index built in "
            f"{seconds:.0f} s; {machine()}"
        )
        asking = Clusters(options.dimensions, seed=3)
        for size, places in filled.places.items():
            own = filled.vectors[places]
            others = np.delete(filled.vectors, places, axis=0)
            print(f"scope of {size} memories")
            measure(filled, size, asking.beside(own, options.questions), "asked about its own")
            if len(others):
                queries = asking.beside(others, options.questions)
                measure(filled, size, queries, "asked about others'")
            measure(filled, size, asking.of(options.questions), "asked about neither")


if __name__ == "__main__":
    main()
