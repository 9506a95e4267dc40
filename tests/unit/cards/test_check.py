"""Seed 001's validation checklist, each point broken by itself and all at once."""

from __future__ import annotations

from typing import Any

from cards_app.memory_card import check_card, generate_memory_card
from tests.tables import table
from tests.unit.cards.test_memory_card import SESSION, session_of

GOOD: dict[str, Any] = generate_memory_card(SESSION).fields()


def test_a_card_that_was_generated_passes() -> None:
    assert check_card(GOOD, session_data=SESSION) == []


@table(
    ("changes", "failures"),
    [
        ({"title": ""}, ["title: must be there, as a text."]),
        ({"title": None}, ["title: must be there, as a text."]),
        ({"title": "x" * 81}, ["title: has 81 characters, at most 80 are allowed."]),
        ({"title": "two\nlines"}, ["title: must be one line, with single spaces."]),
        (
            {"summary_bullets": ["hello"]},
            ["summary_bullets[0]: must begin with the role in brackets, such as [user]."],
        ),
        (
            {"summary_bullets": ["[user] a"] * 4},
            ["summary_bullets: has 4 items, at most 3 are allowed."],
        ),
        ({"decisions": ["a"] * 4}, ["decisions: has 4 items, at most 3 are allowed."]),
        ({"todos": ["a"] * 4}, ["todos: has 4 items, at most 3 are allowed."]),
        ({"notable_quotes": ["a"] * 4}, ["notable_quotes: has 4 items, at most 3 are allowed."]),
        ({"entities": ["Abc"] * 11}, ["entities: has 11 items, at most 10 are allowed."]),
        ({"keywords": ["abcde"] * 11}, ["keywords: has 11 items, at most 10 are allowed."]),
        ({"todos": ["x" * 101]}, ["todos[0]: has 101 characters, at most 100 are allowed."]),
        ({"todos": ["a", " "]}, ["todos[1]: must be a text with something in it."]),
        ({"todos": "a"}, ["todos: must be a list."]),
        ({"todos": None}, ["todos: must be a list."]),
        (
            {"notable_quotes": ["Call 050-1234567!"]},
            ["notable_quotes[0]: holds personal data, which is to be redacted."],
        ),
        ({"outcome": "x"}, ["outcome: must be an object, not of type str."]),
        (
            {"outcome": {"settled": None, "open": ["a"] * 4, "acts": "me"}},
            [
                "outcome.settled: must be a text.",
                "outcome.open: has 4 items, at most 3 are allowed.",
                'outcome.acts: must be "user", "assistant" or "".',
            ],
        ),
        (
            {"title": "dana@shop.example", "keywords": []},
            ["title: holds personal data, which is to be redacted."],
        ),
    ],
)
def test_each_failure_is_told_with_its_path(changes: dict[str, Any], failures: list[str]) -> None:
    assert check_card({**GOOD, **changes}) == failures


def test_every_failure_is_told_at_once() -> None:
    failures = check_card({"title": "x" * 81, "summary_bullets": ["a"] * 4})
    assert len(failures) == 1 + 1 + 4 + 5


def test_a_title_that_was_cut_says_so() -> None:
    data = session_of("word " * 30)
    assert check_card({**GOOD, "title": "word word"}, session_data=data) == [
        'title: is cut, so it must end with "...".'
    ]
    assert check_card({**GOOD, "title": "word word..."}, session_data=data) == []


def test_what_is_no_card_is_told() -> None:
    assert check_card(7) == ["card: must be an object, not of type int."]
