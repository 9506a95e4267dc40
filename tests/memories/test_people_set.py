"""The set of people's questions (``benchmarks/data/people.json``) is whole, and its halves share
nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SET = Path(__file__).parents[2] / "benchmarks" / "data" / "people.json"
LANGUAGES = {"ar", "de", "en", "es", "fr", "he", "it", "pt", "ru", "uk"}
KINDS = {
    "cross_language",
    "dictated",
    "long",
    "other_words",
    "plain",
    "short",
    "slang",
    "transliterated",
    "typos",
}
HARD = {"cross_language", "other_words", "slang"}
HALVES = ("tuning", "held_out")

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


def test_each_business_is_in_one_half_with_its_facts(people: People) -> None:
    halves = {half: _scopes(people, half) for half in HALVES}

    assert {one["half"] for one in people["questions"]} == set(HALVES)
    assert halves["tuning"].isdisjoint(halves["held_out"])
    assert halves["tuning"] | halves["held_out"] == {one["scope"] for one in people["facts"]}
    assert min(Counter(one["scope"] for one in people["facts"]).values()) >= 8


def test_there_are_enough_of_every_language_and_kind_in_both_halves(people: People) -> None:
    assert len(people["facts"]) >= 120
    assert {one["language"] for one in people["facts"]} == LANGUAGES
    assert sum(bool(one["answers"]) for one in people["questions"]) >= 330
    assert sum(not one["answers"] for one in people["questions"]) >= 70
    for half in HALVES:
        asked = [one for one in people["questions"] if one["half"] == half]
        spoken = Counter(one["language"] for one in asked if not one.get("extra"))
        assert spoken.keys() == LANGUAGES
        assert min(spoken.values()) >= 15
        assert {one["kind"] for one in asked} == KINDS
        assert sum(one["kind"] in HARD for one in asked) >= len(asked) / 2


def test_a_question_in_another_language_is_marked_as_such(people: People) -> None:
    language_of = {one["id"]: one["language"] for one in people["facts"]}
    answered = [one for one in people["questions"] if one["answers"]]
    others = [
        one
        for one in answered
        if all(language_of[key] != one["language"] for key in one["answers"])
    ]

    assert [one["id"] for one in answered if one["kind"] == "cross_language"] == [
        one["id"] for one in others
    ]
    # About a third.
    assert len(others) >= 0.3 * len(answered)
    extra = {one["language"] for one in people["questions"] if one.get("extra")}
    assert extra.isdisjoint(LANGUAGES)


def _scopes(people: People, half: str) -> set[str]:
    return {one["scope"] for one in people["questions"] if one["half"] == half}


def _twice(keys: list[str]) -> bool:
    return len(set(keys)) < len(keys)
