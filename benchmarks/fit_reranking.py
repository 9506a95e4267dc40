"""Fits how texts are judged beside each other: run from the project's root.

    python benchmarks/fit_reranking.py

Prints the weights to put into ``memoryproject.foundation.retrieval.reranking``, fitted on the
tuning halves of both
labelled sets, and what they come to on tuning questions that they were not fitted on.

Each question is asked in scopes of many sizes, so that one memory is judged as well as hundreds:
among all memories, among all but those that answer it, and among few, with and without those.
Weights: logistic regression, with a small ridge, of whether a text answers a question, over the
best texts of each message of one question. Offset: then lowered or raised until of what is
recalled at 0.7 among all memories of the blind set's tuning half a share of ``PRECISION`` is
right; each tenth of the questions is judged by weights that were fitted on the others.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from blind import PAIRS as BLIND
from calibrate_recall import PAIRS as OWN
from calibrate_recall import RELEVANT, TOP_K, Measured, read_pairs

from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.retrieval.query import IN_USE
from memoryproject.foundation.retrieval.reranking import (
    FUSED,
    Floats,
    Weights,
    by_itself,
    features_of,
    mixed,
    specific_share,
)

RIDGE = 0.002
# So many of a question's best texts are fitted on: the others are far from 0.7.
BEST = 15
FOLDS = 10
PRECISION = 0.90
SMALL = (1, 8, 40)
CURVE = WordLlamaEmbedder.calibration
# What a question counts among all memories, among all that don't answer it, and among few.
ALL, NO_ANSWER, FEW = 1.0, 0.5, 0.25


@dataclass(frozen=True)
class Part:
    """One question in a message: the features of every text, how specific it is, and what its
    score counts."""

    features: Floats
    specific: float
    worth: float


@dataclass(frozen=True)
class Row:
    """A message asked in one scope. ``number``: of the message, the same in all its scopes."""

    number: int
    parts: Sequence[Part]
    right: np.ndarray
    weight: float

    def scores(self, weights: Weights) -> Floats:
        """The score of every text, for the question in the message that it answers best."""
        scores = [
            part.worth / (1 + np.exp(-mixed(part.features, weights, part.specific)))
            for part in self.parts
        ]
        best: Floats = np.max(scores, axis=0)
        return best


def rows_of(measured: Measured, split: str, first: int) -> Iterator[Row]:
    """Every message of ``split`` in every scope; the messages are numbered from ``first``."""
    choose = random.Random(1)
    everything = range(len(measured.corpus.texts))
    for number, question in enumerate(measured.questions):
        if question.split != split:
            continue
        right = sorted(question.relevant)
        others = [text for text in everything if text not in question.relevant]
        scopes = [(list(everything), ALL)]
        if right:
            scopes.append((others, NO_ANSWER))
        for size in SMALL:
            few = choose.sample(others, min(size, len(others)))
            scopes.append((few, FEW))
            if right:
                scopes.append(([*few[1:], *right], FEW))
        for scope, weight in scopes:
            parts = list(_parts(measured, number, scope))
            yield Row(first + number, parts, np.isin(scope, right), weight)


def _parts(measured: Measured, number: int, scope: Sequence[int]) -> Iterator[Part]:
    corpus = measured.corpus
    asked = measured.asked[number]
    for place, near in enumerate(measured.semantics(number, CURVE)):
        query = corpus.weighed(asked[place].terms, IN_USE, scope)
        worth = query.substance * (IN_USE.part_worth if place else 1.0)
        features = features_of(query, corpus.only(scope), near[scope])
        yield Part(features, specific_share(query), worth)


def fit_weights(rows: Sequence[Row]) -> Weights:
    """Logistic regression by Newton's method, the columns brought to one scale first."""
    features, given, right, counts = [], [], [], []
    for row in rows:
        if len(row.parts) == 1:
            table, specific = row.parts[0].features, row.parts[0].specific
            best = set(np.argsort(-table[:, FUSED])[:BEST].tolist())
            chosen = sorted(best | set(np.flatnonzero(row.right).tolist()))
            features.append(table[chosen] * specific)
            given.append(by_itself(table[chosen]) * (1 - specific))
            right.append(row.right[chosen])
            counts.append(np.full(len(chosen), row.weight))
    table, answers = np.concatenate(features), np.concatenate(right).astype(float)
    count, known = np.concatenate(counts), np.concatenate(given)
    scale = table.std(axis=0)
    scale[scale == 0] = 1.0
    table = table / scale
    ridge = np.full(table.shape[1], RIDGE * count.sum())
    ridge[0] = 0.0
    beta = np.zeros(table.shape[1])
    for _ in range(50):
        predicted = 1 / (1 + np.exp(-np.clip(table @ beta + known, -60, 60)))
        gradient = table.T @ (count * (answers - predicted)) - ridge * beta
        spread = count * predicted * (1 - predicted)
        beta += np.linalg.solve((table * spread[:, None]).T @ table + np.diag(ridge), gradient)
    return Weights(*(beta / scale).tolist())


def outcome(judged: Sequence[tuple[Row, Weights]]) -> tuple[float, float, float]:
    """Precision and recall at 0.7 among the first five, and the share of the questions that
    nothing answers that recall nothing."""
    right = wrong = missed = silent = nothing = 0
    for row, weights in judged:
        scores = row.scores(weights)
        found = [n for n in np.argsort(-scores)[:TOP_K].tolist() if scores[n] >= RELEVANT]
        hits = int(row.right[found].sum())
        right, wrong = right + hits, wrong + len(found) - hits
        missed += int(row.right.sum()) - hits
        if not row.right.any():
            nothing, silent = nothing + 1, silent + (not found)
    return right / max(1, right + wrong), right / max(1, right + missed), silent / max(1, nothing)


def shifted(judged: Sequence[tuple[Row, Weights]], step: float) -> list[tuple[Row, Weights]]:
    """All offsets moved by one step."""
    return [(row, replace(known, offset=known.offset + step)) for row, known in judged]


def left_out(rows: Sequence[Row]) -> list[tuple[Row, Weights]]:
    """Each row with weights fitted on the rows of other messages."""
    judged = []
    for fold in range(FOLDS):
        weights = fit_weights([row for row in rows if row.number % FOLDS != fold])
        judged += [(row, weights) for row in rows if row.number % FOLDS == fold]
    return judged


def main() -> None:
    """Fits and prints."""
    embedder = WordLlamaEmbedder()
    blind = list(rows_of(read_pairs(embedder, BLIND), "tune", 0))
    own = list(rows_of(read_pairs(embedder, OWN), "tune", 1_000))
    judged = left_out([*blind, *own])
    blind_numbers = {row.number for row in blind}
    whole = [item for item in judged if item[0].weight == ALL and item[0].number in blind_numbers]
    steps = np.arange(3.0, -3.0, -0.05).tolist()
    step = next(step for step in steps if outcome(shifted(whole, step))[0] >= PRECISION)
    fitted = fit_weights([*blind, *own])
    print(replace(fitted, offset=fitted.offset + step))
    print("left out, precision, recall and silence:")
    for name, chosen in (
        ("blind set, all memories", whole),
        ("both sets, all memories", [item for item in judged if item[0].weight == ALL]),
        ("both sets, without the answers", [i for i in judged if i[0].weight == NO_ANSWER]),
        ("both sets, few memories", [item for item in judged if item[0].weight == FEW]),
    ):
        print(f" {name}: " + " ".join(f"{x:.3f}" for x in outcome(shifted(chosen, step))))


if __name__ == "__main__":
    main()
