"""Fits and measures the constants of recall: run from the project's root.

    python benchmarks/calibrate_recall.py [--data LOCOMO.json]

Reads the labelled pairs in ``benchmarks/data/recall_pairs.json`` (constants are fitted on their
"tune" part and measured on both) and, with ``--data``, conversations in LoCoMo's form. Prints the
constants to put into ``memoryproject.foundation.retrieval.query``, and the default embedder's
calibration.
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

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.integrations.embedders.base import Calibration, Embedder
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from memoryproject.foundation.retrieval.query import (
    IN_USE,
    Constants,
    LexicalQuery,
    QueryTerm,
    Scope,
    weigh_query,
)
from memoryproject.foundation.retrieval.reranking import (
    CountedTexts,
    Floats,
    best_scores,
    semantic_relevance,
)
from memoryproject.foundation.retrieval.subqueries import QueryPart, query_parts
from memoryproject.foundation.text.terms import index_text

PAIRS = Path(__file__).parent / "data" / "recall_pairs.json"
RELEVANT = 0.7
TOP_K = 5
COSINE_FIT_STEPS = 200


@dataclass(frozen=True)
class Question:
    """A question, the numbers of the texts that answer it, and what is measured for each text."""

    text: str
    relevant: frozenset[int]
    split: str
    form: str = "single"
    language: str = ""


class Corpus:
    """Texts with their index terms and vectors, as recall stores them."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        indexed = [index_text(text) for text in texts]
        counted = [Counter(item.terms) for item in indexed]
        self.texts = CountedTexts.of(counted, [item.length for item in indexed])
        self.vectors = matrix(embed_covered(embedder, texts), embedder.dimensions)
        self.holders: dict[str, set[int]] = {}
        for number, counts in enumerate(counted):
            for term in counts:
                self.holders.setdefault(term, set()).add(number)

    def weighed(
        self,
        terms: Sequence[QueryTerm],
        constants: Constants,
        texts: Sequence[int] | None = None,
    ) -> LexicalQuery:
        """The terms weighed by how frequent they are here; ``texts``: only in these."""
        among = range(len(self.texts)) if texts is None else texts
        average = float(self.texts.lengths[among].mean()) if len(among) else 0.0
        scope = Scope(len(among), average, self.frequencies(terms, among))
        return weigh_query(terms, scope, constants=constants)

    def only(self, texts: Sequence[int]) -> CountedTexts:
        """These texts alone."""
        whole = self.texts
        return CountedTexts(whole.columns, whole.counts[texts], whole.lengths[texts])

    def frequencies(self, terms: Sequence[QueryTerm], texts: Iterable[int]) -> list[int]:
        """In how many of these texts each term is."""
        among = set(texts)
        holders = [
            set().union(*(self.holders.get(form, set()) for form, _ in term.alternatives))
            for term in terms
        ]
        return [len(found & among) for found in holders]


def matrix(vectors: Sequence[Sequence[float] | None], dimensions: int) -> np.ndarray:
    """One row a vector, of NaN where there is none."""
    missing = [float("nan")] * dimensions
    return np.array([missing if vector is None else vector for vector in vectors])


class Measured:
    """One corpus with its questions, cosines computed once."""

    def __init__(self, corpus: Corpus, questions: Sequence[Question], embedder: Embedder) -> None:
        self.corpus = corpus
        self.questions = questions
        self.asked: list[list[QueryPart]] = [query_parts(question.text) for question in questions]
        self.cosines: list[np.ndarray] = []
        for asked in self.asked:
            vectors = embed_covered(embedder, [text.text for text in asked])
            self.cosines.append(matrix(vectors, embedder.dimensions) @ corpus.vectors.T)

    def scores(
        self, number: int, curve: Calibration, constants: Constants, *, parts: bool = True
    ) -> list[float]:
        """The fused score of every text for question ``number``; without ``parts`` as if a
        message were always one question."""
        asked = self.asked[number] if parts else self.asked[number][:1]
        queries = [self.corpus.weighed(text.terms, constants) for text in asked]
        semantics = self.semantics(number, curve)[: len(asked)]
        scores = best_scores(
            queries, self.corpus.texts, semantics.T, part_worth=constants.part_worth
        )
        return scores.tolist()

    def semantics(self, number: int, curve: Calibration) -> Floats:
        """For each text that question ``number`` is looked for as, a row with the semantic
        relevance of every text to it; NaN where one of them has no vector."""
        cosines = self.cosines[number]
        return semantic_relevance(cosines, midpoint=curve.midpoint, slope=curve.slope)


def read_pairs(embedder: Embedder, path: Path = PAIRS) -> Measured:
    """Labelled memories and questions, by default those that the rules were made with."""
    data = json.loads(path.read_text(encoding="utf-8"))
    numbers = {key: number for number, key in enumerate(data["memories"])}
    questions = [
        Question(
            item["query"],
            frozenset(numbers[key] for key in item["relevant"]),
            item["split"],
            item.get("kind") or item.get("form", "single"),
            item.get("language", ""),
        )
        for item in data["queries"]
    ]
    return Measured(Corpus(list(data["memories"].values()), embedder), questions, embedder)


def read_conversations(path: Path, embedder: Embedder) -> list[Measured]:
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
        corpus = Corpus([_turn_text(turn) for turn in turns], embedder)
        measured.append(Measured(corpus, questions, embedder))
    return measured


def _turns(conversation: dict[str, Any]) -> Iterable[dict[str, Any]]:
    number = 1
    while f"session_{number}_date_time" in conversation:
        yield from conversation.get(f"session_{number}", [])
        number += 1


def _turn_text(turn: dict[str, Any]) -> str:
    caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def fit_curve(cosines: np.ndarray, relevant: np.ndarray) -> Calibration:
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
    return Calibration(midpoint=float(-beta[0] / beta[1]), slope=float(beta[1]))


def cosine_pairs(measured: Measured) -> tuple[np.ndarray, np.ndarray]:
    """The cosines of every tuning question with every text, where the model covers both, and
    whether the text answers it."""
    cosines, relevant = [], []
    for number, question in enumerate(measured.questions):
        if question.split != "tune" or not question.relevant:
            continue
        whole = measured.cosines[number][0]
        for text in np.flatnonzero(~np.isnan(whole)):
            cosines.append(whole[text])
            relevant.append(int(text) in question.relevant)
    return np.array(cosines), np.array(relevant)


def precision_recall(
    measured: Measured,
    split: str,
    curve: Calibration,
    constants: Constants,
    *,
    form: str = "",
    parts: bool = True,
) -> tuple[float, float]:
    """Over the questions of ``split`` and ``form`` (all where empty): of what is recalled (top 5,
    score of 0.7 or more) the share that is right, and of what is right the share recalled."""
    right = wrong = missed = 0
    for number, question in enumerate(measured.questions):
        if question.split != split or (form and question.form != form):
            continue
        scores = measured.scores(number, curve, constants, parts=parts)
        best = sorted(range(len(scores)), key=lambda text: -scores[text])[:TOP_K]
        found = {text for text in best if scores[text] >= RELEVANT}
        right += len(found & question.relevant)
        wrong += len(found - question.relevant)
        missed += len(question.relevant - found)
    return right / max(1, right + wrong), right / max(1, right + missed)


def recall_at(
    conversations: Sequence[Measured],
    k: int,
    curve: Calibration,
    c: Constants,
    *,
    parts: bool = True,
) -> float:
    """The mean share of a question's evidence among the first ``k``."""
    shares = []
    for measured in conversations:
        for number, question in enumerate(measured.questions):
            scores = np.array(measured.scores(number, curve, c, parts=parts))
            best = set(np.argsort(-scores, kind="stable")[:k].tolist())
            shares.append(len(best & question.relevant) / len(question.relevant))
    return float(np.mean(shares))


def fit_constants(measured: Measured, curve: Calibration) -> Constants:
    """The best of a coarse grid by F1 on the tuning part, where precision is 0.9 or more.

    The grid is coarse on purpose: with this few pairs a finer one fits single questions.
    """
    best, best_rank = IN_USE, (False, 0.0)
    grid = itertools.product((0.34, 0.38, 0.42), (2.5, 3.0, 4.0), (0.3, 0.5, 0.8))
    for even, slope, weight in grid:
        candidate = replace(IN_USE, even_coverage=even, coverage_slope=slope, vector_weight=weight)
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
    embedder = WordLlamaEmbedder()
    pairs = read_pairs(embedder)
    conversations = read_conversations(options.data, embedder) if options.data else []

    parts = [cosine_pairs(measured) for measured in conversations or [pairs]]
    cosines = np.concatenate([part[0] for part in parts])
    relevant = np.concatenate([part[1] for part in parts])
    curve = fit_curve(cosines, relevant)
    print(f"calibration from {relevant.sum()} relevant of {relevant.size} pairs: {curve}")
    report("in use", pairs, conversations, embedder.calibration, IN_USE)
    report("best of the grid", pairs, conversations, curve, fit_constants(pairs, curve))


def report(
    name: str,
    pairs: Measured,
    conversations: Sequence[Measured],
    curve: Calibration,
    constants: Constants,
) -> None:
    """Prints what these constants come to, on messages as one question and taken apart."""
    print(f"{name}: {curve} {constants}")
    for parts, taken in ((False, "as one question"), (True, "taken apart")):
        print(f" messages {taken}:")
        for form, split in itertools.product(("single", "compound"), ("tune", "held_out")):
            precision, recall = precision_recall(
                pairs, split, curve, constants, form=form, parts=parts
            )
            print(f"  {form} {split}: precision {precision:.3f} recall {recall:.3f}")
        if conversations:
            found = recall_at(conversations, 10, curve, constants, parts=parts)
            print(f"  conversations: recall@10 {found:.3f}")


if __name__ == "__main__":
    main()
