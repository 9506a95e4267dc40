"""The set of people's questions (``benchmarks/data/people.json``) is whole, and its halves share
nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SET = Path(__file__).parents[2] / "benchmarks" / "data" / "people.json"

People = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def people() -> People:
    data: People = json.loads(SET.read_text(encoding="utf-8"))
    return data


def test_no_id_and_no_text_is_there_twice(people: People) -> None:
    entries = people["facts"] + people["questions"]
    questions = [" ".join(one["text"].casefold().split()) for one in people["questions"]]

    assert [key for key, count in Counter(one["id"] for one in entries).items() if count > 1] == []
    assert [text for text, count in Counter(questions).items() if count > 1] == []
    assert len({one["text"] for one in people["facts"]}) == len(people["facts"])
    assert [one["id"] for one in entries if one["text"] != one["text"].strip()] == []


def test_every_answer_is_a_fact_of_the_same_business(people: People) -> None:
    scope_of = {one["id"]: one["scope"] for one in people["facts"]}
    answers = [(one, key) for one in people["questions"] for key in one["answers"]]

    assert [key for one, key in answers if scope_of.get(key) != one["scope"]] == []
    assert [one["id"] for one in people["questions"] if _twice(one["answers"])] == []
    assert {key for _, key in answers} == set(scope_of)


def _twice(keys: list[str]) -> bool:
    return len(set(keys)) < len(keys)
