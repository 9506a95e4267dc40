"""Precision and recall at the default score of 0.7 over the labelled pairs in benchmarks/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.relevance.store import Store

PAIRS = Path(__file__).parents[3] / "benchmarks" / "data" / "recall_pairs.json"


@pytest.mark.parametrize("split", ["tune", "held_out"])
@pytest.mark.parametrize(("form", "precision"), [("single", 0.83), ("compound", 0.72)])
def test_most_of_what_is_recalled_is_right_and_most_of_what_is_right_recalled(
    split: str, form: str, precision: float
) -> None:
    data = json.loads(PAIRS.read_text(encoding="utf-8"))
    memories = data["memories"]
    store = Store(list(memories.values()))
    right = wrong = missed = 0

    for item in data["queries"]:
        if item["split"] != split or item.get("form", "single") != form:
            continue
        relevant = {memories[key] for key in item["relevant"]}
        recalled = set(store.recalled(item["query"]))
        right += len(recalled & relevant)
        wrong += len(recalled - relevant)
        missed += len(relevant - recalled)

    assert right / (right + wrong) >= precision
    assert right / (right + missed) >= 0.55


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "when does the shop open on Friday?",
            "Opening hours: Sunday to Thursday 9:00-18:00, Friday 9:00-13:00",
        ),
        ("כמה עולה תספורת גברים?", 'מחיר תספורת גברים 80 ש"ח'),
    ],
)
def test_a_question_in_other_words_finds_its_answer(question: str, answer: str) -> None:
    data = json.loads(PAIRS.read_text(encoding="utf-8"))

    assert answer in Store(list(data["memories"].values())).recalled(question)
