"""Fits how texts are judged beside each other: run from the project's root.

    python benchmarks/fit_rivals.py

Prints the weights to put into ``memoryproject.lib.rivals``, fitted on the tuning halves of both
labelled sets, and what they come to on tuning questions that they were not fitted on.

Weights: logistic regression, with a small ridge, of whether a text answers a question, over the
best texts by words and vector of each message of one question. Offset: then lowered or raised
until of what is recalled at 0.7 in the blind set's tuning half a share of ``PRECISION`` is right.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from blind import PAIRS as BLIND  # noqa: E402
from calibrate_recall import Measured, Question, read_pairs  # noqa: E402

from memoryproject.integrations.embedders.wordllama import WordLlamaEmbedder  # noqa: E402
from memoryproject.lib.relevance import IN_USE, LexicalQuery  # noqa: E402
from memoryproject.lib.rivals import (  # noqa: E402
    FUSED,
    Evidence,
    Floats,
    Weights,
    by_itself,
    features_of,
    mixed,
    specific_share,
)

RIDGE = 0.01
# So many of a question's best texts are fitted on: the others are far from 0.7.
BEST = 15
FOLDS = 10
PRECISION = 0.90
CURVE = WordLlamaEmbedder.calibration


class Row:
    """A question with the features of every text for each question in it."""

    def __init__(self, measured: Measured, number: int) -> None:
        self.question: Question = measured.questions[number]
        corpus = measured.corpus
        self.parts: list[Floats] = []
        self.queries: list[LexicalQuery] = []
        asked = measured.asked[number]
        for text, near in zip(asked, measured.semantics(number, CURVE), strict=True):
            query = corpus.weighed(text.terms, IN_USE)
            texts = list(map(Evidence, corpus.counts, corpus.lengths, near))
            self.parts.append(features_of(query, texts))
            self.queries.append(query)
        self.right = np.isin(np.arange(len(corpus.counts)), list(self.question.relevant))

    def scores(self, weights: Weights) -> Floats:
        """The score of every text, for the question in the message that it answers best."""
        scores = []
        for place, (part, query) in enumerate(zip(self.parts, self.queries, strict=True)):
            worth = query.substance * (IN_USE.part_worth if place else 1.0)
            scores.append(worth / (1 + np.exp(-mixed(query, part, weights))))
        best: Floats = np.max(scores, axis=0)
        return best


def tuning_rows(measured: Measured) -> list[Row]:
    """The questions of the tuning half."""
    numbers = range(len(measured.questions))
    return [Row(measured, n) for n in numbers if measured.questions[n].split == "tune"]


def fit_weights(rows: Sequence[Row]) -> Weights:
    """Logistic regression by Newton's method, the columns brought to one scale first."""
    features, fixed, right = [], [], []
    for row in rows:
        if len(row.parts) == 1:
            best = set(np.argsort(-row.parts[0][:, FUSED])[:BEST].tolist())
            chosen = sorted(best | row.question.relevant)
            specific = specific_share(row.queries[0])
            features.append(row.parts[0][chosen] * specific)
            fixed.append(by_itself(row.parts[0][chosen]) * (1 - specific))
            right.append(row.right[chosen])
    table, answers = np.concatenate(features), np.concatenate(right).astype(float)
    given = np.concatenate(fixed)
    scale = table.std(axis=0)
    scale[scale == 0] = 1.0
    table = table / scale
    ridge = np.full(table.shape[1], RIDGE * len(table))
    beta = np.zeros(table.shape[1])
    for _ in range(50):
        predicted = 1 / (1 + np.exp(-table @ beta - given))
        gradient = table.T @ (answers - predicted) - ridge * beta
        spread = predicted * (1 - predicted)
        beta += np.linalg.solve((table * spread[:, None]).T @ table + np.diag(ridge), gradient)
    return Weights(*(beta / scale).tolist())


def outcome(rows: Sequence[Row], weights: Weights) -> tuple[float, float, float]:
    """Precision and recall at 0.7 among the first five, and the share of the questions that
    nothing answers that recall nothing."""
    right = wrong = missed = silent = nothing = 0
    for row in rows:
        scores = row.scores(weights)
        found = [n for n in np.argsort(-scores)[:5].tolist() if scores[n] >= 0.7]
        hits = sum(bool(row.right[n]) for n in found)
        right, wrong = right + hits, wrong + len(found) - hits
        missed += int(row.right.sum()) - hits
        if not row.question.relevant:
            nothing, silent = nothing + 1, silent + (not found)
    return right / max(1, right + wrong), right / max(1, right + missed), silent / max(1, nothing)


def with_offset(rows: Sequence[Row], weights: Weights) -> Weights:
    """The weights with the highest offset at which precision is ``PRECISION``."""
    for step in np.arange(3.0, -3.0, -0.05):
        shifted = replace(weights, offset=weights.offset + float(step))
        if outcome(rows, shifted)[0] >= PRECISION:
            return shifted
    return weights


def main() -> None:
    """Fits and prints."""
    embedder = WordLlamaEmbedder()
    blind = tuning_rows(read_pairs(embedder, BLIND))
    own = tuning_rows(read_pairs(embedder))
    blocks = np.array_split(np.arange(len(blind)), FOLDS)
    fitted = with_offset(blind, fit_weights([*blind, *own]))
    print(fitted)
    print(
        "blind set, tuning half, fitted on it: {:.3f} {:.3f} {:.3f}".format(*outcome(blind, fitted))
    )
    print("own set, tuning half: {:.3f} {:.3f} {:.3f}".format(*outcome(own, fitted)))
    right = []
    for left_out in blocks:
        rest = [row for number, row in enumerate(blind) if number not in left_out]
        weights = with_offset(rest, fit_weights([*rest, *own]))
        right.append((weights, [blind[number] for number in left_out]))
    print("left out:", pooled(right))


def pooled(parts: Sequence[tuple[Weights, Sequence[Row]]]) -> str:
    """The outcome over parts with weights of their own."""
    right = wrong = missed = silent = nothing = 0
    for weights, rows in parts:
        for row in rows:
            scores = row.scores(weights)
            found = [n for n in np.argsort(-scores)[:5].tolist() if scores[n] >= 0.7]
            hits = sum(bool(row.right[n]) for n in found)
            right, wrong = right + hits, wrong + len(found) - hits
            missed += int(row.right.sum()) - hits
            if not row.question.relevant:
                nothing, silent = nothing + 1, silent + (not found)
    return f"{right / (right + wrong):.3f} {right / (right + missed):.3f} {silent / nothing:.3f}"


if __name__ == "__main__":
    main()
