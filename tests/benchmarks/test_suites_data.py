"""The cases of benchmarks/data/suites.json can measure what they are for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

DATA = Path(__file__).parents[2] / "benchmarks" / "data" / "suites.json"
SUITES = {"contradiction", "abstention", "deletion", "supersession"}


def test_each_suite_has_two_equal_halves_in_many_languages() -> None:
    cases = json.loads(DATA.read_text(encoding="utf-8"))["cases"]
    assert {case["suite"] for case in cases} == SUITES
    assert len({case["id"] for case in cases}) == len(cases)
    for suite in SUITES:
        own = [case for case in cases if case["suite"] == suite]
        halves = Counter(case["split"] for case in own)
        assert halves["tune"] == halves["held_out"] >= 20
        for half in halves:
            assert len({case["language"] for case in own if case["split"] == half}) >= 6


def test_no_question_tells_what_is_to_be_erased() -> None:
    cases = json.loads(DATA.read_text(encoding="utf-8"))["cases"]
    for case in cases:
        if case["suite"] == "deletion":
            target, other = case["facts"]
            for mark in case["marks"]:
                assert mark.casefold() not in "\n".join([other, *case["questions"]]).casefold()
            assert any(mark in target for mark in case["marks"]), case["id"]
