"""Fits and measures the constants of recall: run from the project's root.

    python benchmarks/calibrate_recall.py [--data LOCOMO.json]

Reads the labelled pairs in ``benchmarks/data/recall_pairs.json`` (constants are fitted on their
"tune" part and measured on both) and, with ``--data``, conversations in LoCoMo's form. Prints the
constants to put into ``memoryproject.lib.relevance`` and the default embedder's calibration.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import wordllama

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.lib.relevance import (  # noqa: E402
    FITTED,
    Constants,
    Scope,
    fused_score,
    semantic_relevance,
    weigh_query,
)
from memoryproject.lib.text.query import query_terms  # noqa: E402
from memoryproject.lib.text.terms import index_text  # noqa: E402

PAIRS = Path(__file__).parent / "data" / "recall_pairs.json"
RELEVANT = 0.7
TOP_K = 5
COSINE_FIT_STEPS = 200


@dataclass(frozen=True)
class Curve:
    """A calibration of cosines: see ``semantic_relevance``."""

    midpoint: float
    slope: float


# The default embedder's calibration, fitted with --data: the few pairs of our own would give a
# curve that is far too sure of itself.
CURVE_IN_USE = Curve(midpoint=0.31, slope=10.0)


@dataclass(frozen=True)
class Question:
    """A question, the numbers of the texts that answer it, and what is measured for each text."""

    text: str
    relevant: frozenset[int]
    split: str


class Corpus:
    """Texts with their index terms and vectors, as recall stores them."""

    def __init__(self, texts: Sequence[str], model: Any) -> None:
        indexed = [index_text(text) for text in texts]
        self.counts: list[dict[str, float]] = [dict(Counter(item.terms)) for item in indexed]
        self.lengths = [item.length for item in indexed]
        self.vectors = model.embed(list(texts), norm=True)
        self.covered = [covers(text) for text in texts]
        self.holders: dict[str, set[int]] = {}
        for number, counts in enumerate(self.counts):
            for term in counts:
                self.holders.setdefault(term, set()).add(number)

    def lexical(self, text: str, constants: Constants) -> tuple[list[float], float]:
        """The lexical relevance of each text to a question, and the question's substance."""
        terms = query_terms(text)
        frequencies = [
            len(set().union(*(self.holders.get(form, set()) for form, _ in term.alternatives)))
            for term in terms
        ]
        average = sum(self.lengths) / len(self.lengths)
        scope = Scope(len(self.counts), average, frequencies)
        query = weigh_query(terms, scope, constants=constants)
        scores = [
            query.relevance(counts, length)
            for counts, length in zip(self.counts, self.lengths, strict=True)
        ]
        return scores, query.substance


def covers(text: str) -> bool:
    """Whether wordllama knows the text's letters: half of them or more are Latin."""
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and sum(letter < "\u0250" for letter in letters) * 2 >= len(letters)


class Measured:
    """One corpus with its questions, cosines computed once."""

    def __init__(self, corpus: Corpus, questions: Sequence[Question], model: Any) -> None:
        self.corpus = corpus
        self.questions = questions
        vectors = model.embed([question.text for question in questions], norm=True)
        self.cosines = vectors @ corpus.vectors.T

    def scores(self, number: int, curve: Curve, constants: Constants) -> list[float]:
        """The fused score of every text for question ``number``."""
        question = self.questions[number]
        lexical, substance = self.corpus.lexical(question.text, constants)
        known = covers(question.text)
        scores = []
        for text, words in enumerate(lexical):
            semantic = None
            if known and self.corpus.covered[text]:
                cosine = float(self.cosines[number, text])
                semantic = semantic_relevance(cosine, midpoint=curve.midpoint, slope=curve.slope)
            scores.append(fused_score(words, semantic, substance=substance, constants=constants))
        return scores


def read_pairs(model: Any) -> Measured:
    """The project's own labelled memories and questions."""
    data = json.loads(PAIRS.read_text(encoding="utf-8"))
    numbers = {key: number for number, key in enumerate(data["memories"])}
    questions = [
        Question(item["query"], frozenset(numbers[key] for key in item["relevant"]), item["split"])
        for item in data["queries"]
    ]
    return Measured(Corpus(list(data["memories"].values()), model), questions, model)


def read_conversations(path: Path, model: Any) -> list[Measured]:
    """Conversations in LoCoMo's form, each turn as the text "SPEAKER: TEXT [CAPTION]"."""
    measured = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        turns = list(_turns(sample["conversation"]))
        numbers = {turn["dia_id"]: number for number, turn in enumerate(turns)}
        questions = []
        for item in sample["qa"]:
            evidence = {numbers[key] for key in item.get("evidence", []) if key in numbers}
            if item["category"] != 5 and evidence:
                questions.append(Question(item["question"], frozenset(evidence), "tune"))
        measured.append(Measured(Corpus([_turn_text(t) for t in turns], model), questions, model))
    return measured


def _turns(conversation: dict[str, Any]) -> Iterable[dict[str, Any]]:
    number = 1
    while f"session_{number}_date_time" in conversation:
        yield from conversation.get(f"session_{number}", [])
        number += 1


def _turn_text(turn: dict[str, Any]) -> str:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def fit_curve(cosines: np.ndarray, relevant: np.ndarray) -> Curve:
    """Logistic regression of relevance on the cosine by Newton's method, both classes of equal
    weight: a vector should add nothing where it says nothing."""
    weights = np.where(relevant, 0.5 / relevant.sum(), 0.5 / (~relevant).sum())
    features = np.stack([np.ones_like(cosines), cosines], axis=1)
    beta = np.zeros(2)
    for _ in range(COSINE_FIT_STEPS):
        predicted = 1 / (1 + np.exp(-features @ beta))
        gradient = features.T @ (weights * (relevant - predicted))
        spread = weights * predicted * (1 - predicted)
        step = np.linalg.solve((features * spread[:, None]).T @ features, gradient)
        beta += step
        if np.abs(step).max() < 1e-9:
            break
    return Curve(midpoint=float(-beta[0] / beta[1]), slope=float(beta[1]))


def cosine_pairs(measured: Measured) -> tuple[np.ndarray, np.ndarray]:
    """The cosines of every tuning question with every text that the model covers, and whether
    the text answers it."""
    cosines, relevant = [], []
    for number, question in enumerate(measured.questions):
        if question.split != "tune" or not question.relevant or not covers(question.text):
            continue
        for text in np.flatnonzero(measured.corpus.covered):
            cosines.append(measured.cosines[number, text])
            relevant.append(int(text) in question.relevant)
    return np.array(cosines), np.array(relevant)


def precision_recall(
    measured: Measured, split: str, curve: Curve, constants: Constants
) -> tuple[float, float]:
    """Over all questions of ``split``: of what is recalled (top 5, score of 0.7 or more) the
    share that is right, and of what is right the share that is recalled."""
    right = wrong = missed = 0
    for number, question in enumerate(measured.questions):
        if question.split != split:
            continue
        scores = measured.scores(number, curve, constants)
        best = sorted(range(len(scores)), key=lambda text: -scores[text])[:TOP_K]
        found = {text for text in best if scores[text] >= RELEVANT}
        right += len(found & question.relevant)
        wrong += len(found - question.relevant)
        missed += len(question.relevant - found)
    return right / max(1, right + wrong), right / max(1, right + missed)


def recall_at(conversations: Sequence[Measured], k: int, curve: Curve, c: Constants) -> float:
    """The mean share of a question's evidence among the first ``k``."""
    shares = []
    for measured in conversations:
        for number, question in enumerate(measured.questions):
            scores = np.array(measured.scores(number, curve, c))
            best = set(np.argsort(-scores, kind="stable")[:k].tolist())
            shares.append(len(best & question.relevant) / len(question.relevant))
    return float(np.mean(shares))


def fit_constants(measured: Measured, curve: Curve) -> Constants:
    """The best of a coarse grid by F1 on the tuning part, where precision is 0.9 or more.

    The grid is coarse on purpose: with this few pairs a finer one fits single questions.
    """
    best, best_rank = FITTED, (False, 0.0)
    grid = itertools.product((0.34, 0.38, 0.42), (2.5, 3.0, 4.0), (0.3, 0.5, 0.8))
    for even, slope, weight in grid:
        candidate = replace(FITTED, even_coverage=even, coverage_slope=slope, vector_weight=weight)
        precision, recall = precision_recall(measured, "tune", curve, candidate)
        rank = (precision >= 0.9, 2 * precision * recall / max(1e-9, precision + recall))
        if rank > best_rank:
            best, best_rank = candidate, rank
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """Fits, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="conversations in LoCoMo's form, as JSON")
    options = parser.parse_args(arguments)
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    pairs = read_pairs(model)
    conversations = read_conversations(options.data, model) if options.data else []

    parts = [cosine_pairs(measured) for measured in conversations or [pairs]]
    cosines = np.concatenate([part[0] for part in parts])
    relevant = np.concatenate([part[1] for part in parts])
    curve = fit_curve(cosines, relevant)
    print(f"calibration from {relevant.sum()} relevant of {relevant.size} pairs: {curve}")
    fitted = fit_constants(pairs, curve)
    candidates = (("in use", CURVE_IN_USE, FITTED), ("best of the grid", curve, fitted))
    for name, curve, constants in candidates:
        print(f"{name}: {constants}")
        for split in ("tune", "held_out"):
            precision, recall = precision_recall(pairs, split, curve, constants)
            print(f"  {split}: precision {precision:.3f} recall {recall:.3f}")
        if conversations:
            print(
                f"  conversations: recall@10 {recall_at(conversations, 10, curve, constants):.3f}"
            )


if __name__ == "__main__":
    main()
