"""Measures memory documents on both stores: run from the project's root.

    python benchmarks/measure_memory_documents.py [--documents 10000]

Fills a tree and a database of its own, in a temporary folder, with half of the documents and
then with all of them, and measures for both: bringing them in, bringing them in again, listing,
finding by a pattern, loading one, exporting and cleaning up. Prints the seconds that it took,
those of them that this process computed (waiting for the disk and the database is not in them),
how these grew, and, of a second run, the most memory that Python held. Then how long a megabyte
of the worst bytes takes the parser, against half of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

from own_database import FOLDER, machine, own_database

# isort: split


from memories_app.memory_document_format.envelope import envelope_read
from memories_app.memory_document_format.names import Pattern
from memories_app.memory_document_format.strict_json import MemoryDocumentInvalidError
from memories_app.memory_documents.database_store import DatabaseStore
from memories_app.memory_documents.store import (
    Filter,
    Kept,
    Key,
    MemoryDocumentStore,
    documents_transfer,
)
from memories_app.memory_documents.tree_store import TreeStore
from memoryproject.foundation.audit.audit_events import COMMAND_LINE

Measure = tuple[float, float]

WORST = {
    "brackets": lambda size: "[" * size,
    "quotes": lambda size: '"' + '\\"' * (size // 2),
    "numbers of 4,000 digits": lambda size: "[" + ",".join(["9" * 4_000] * (size // 4_001)) + "]",
    "one long fraction": lambda size: "[0." + "9" * (size - 10) + "]",
    "keys of 50 characters": lambda size: (
        "{" + ",".join(f'"{number:050}":NaN' for number in range(size // 60)) + "}"
    ),
    "a long key over many values": lambda size: (
        '{"' + "k" * (size // 2) + '":[' + ",".join(["NaN"] * (size // 60)) + "]}"
    ),
    "half characters": lambda size: '["' + "\\ud800" * (size // 6 - 5) + '"]',
    "not UTF-8": lambda size: b"\xf0\x9f" * (size // 2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000, help="in each store")
    arguments = parser.parse_args()
    with own_database():
        print(f"{machine()}\n")
        counts = (arguments.documents // 2, arguments.documents)
        for name in ("tree", "database"):
            print(f"{name:<22}{counts[0]:>18,}{counts[1]:>18,}  growth       memory")
            times = [measure_store(name, count, timed) for count in counts]
            peaks = [measure_store(name, count, traced) for count in counts]
            for step in times[0]:
                show(step, [each[step] for each in times], [each[step] for each in peaks])
            print()
        measure_parser()


def measure_store(
    name: str, count: int, measured: Callable[[Callable[[], object]], Measure]
) -> dict[str, Measure]:
    """Return the measurement of each step; nothing is left afterwards."""
    root = FOLDER / "trees"
    shutil.rmtree(root, ignore_errors=True)
    source = TreeStore(root / "source")
    for batch in documents(count):
        source.put(batch)
    store: MemoryDocumentStore = (
        TreeStore(root / "store") if name == "tree" else DatabaseStore(actor=COMMAND_LINE)
    )
    steps: dict[str, Callable[[], object]] = {
        "import": lambda: documents_transfer(source=source, target=store),
        "import again": lambda: documents_transfer(source=source, target=store),
        "list": lambda: consume(store.find(Filter())),
        "query": lambda: consume(store.find(Filter(pattern=Pattern("feature-1*")))),
        "load the newest": lambda: store.load(category="context", identifier="feature-4"),
        "export": lambda: documents_transfer(source=store, target=TreeStore(root / "out")),
        "cleanup": lambda: [
            store.cleanup(category=category, older_than=timedelta(days=7))
            for category in ("context", "decisions", "interfaces", "handoffs")
        ],
    }
    return {step: measured(work) for step, work in steps.items()}


def documents(count: int) -> Iterator[list[Kept]]:
    """Documents of about 2 KB of all categories, in batches."""
    notes = {"x-notes": "The quick brown fox jumps over the lazy dog. " * 40}
    batch: list[Kept] = []
    for number in range(count):
        category = ("context", "decisions", "interfaces", "handoffs")[number % 4]
        name = f"feature-{number}"
        meta = {"created": "2025-11-25T10:30:00Z", "category": category, "summary": name}
        text = json.dumps({"meta": meta, "content": notes}, indent=2)
        place = f"2025-11-25-{name}" if category == "context" else name
        batch.append(Kept(Key(category, place), envelope_read(text)))
        if len(batch) == 100 or number == count - 1:
            yield batch
            batch = []


def consume(found: Iterator[object]) -> int:
    return sum(1 for _ in found)


def timed(work: Callable[[], object]) -> Measure:
    """Seconds, and those that this process computed."""
    started, computed = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - started, time.process_time() - computed


def traced(work: Callable[[], object]) -> Measure:
    """Megabytes at the most, and at the end."""
    tracemalloc.start()
    work()
    left, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1_000_000, left / 1_000_000


def show(step: str, times: list[Measure], peaks: list[Measure]) -> None:
    shown = "".join(f"{wall:>9.2f}s{computed:>7.2f}s" for wall, computed in times)
    growth = times[1][1] / max(times[0][1], 1e-9)
    print(f"    {step:<18}{shown}{growth:>7.1f}x{peaks[0][0]:>7.1f} →{peaks[1][0]:>5.1f} MB")


def measure_parser() -> None:
    print(f"{'parser':<32}{'0.5 MB':>9}{'1 MB':>9}  growth")
    for name, make in WORST.items():
        times = []
        for size in (500_000, 1_000_000):
            raw = make(size)
            best = min(parsed(raw) for _ in range(3))
            times.append(best * 1000)
        print(f"    {name:<28}{times[0]:>7.1f}ms{times[1]:>7.1f}ms{times[1] / times[0]:>7.1f}x")


def parsed(raw: bytes | str) -> float:
    started = time.perf_counter()
    with suppress(MemoryDocumentInvalidError):
        envelope_read(raw)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
