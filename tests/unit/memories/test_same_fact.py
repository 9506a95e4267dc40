"""When two texts tell the same fact: a labelled table, and what must hold for any text."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, strategies as st

from memories_app.facts.facts import Verdict, fact_key, likeness_of, verdict_on
from tests.tables import table

# Labelled pairs: the same fact, another one; an older and a newer text of which the newer replaces
# the older, or both stay.
FACTS = json.loads(Path(__file__).with_name("facts.json").read_text(encoding="utf-8"))


def replaces(newer: str, older: str) -> bool:
    return verdict_on(newer=likeness_of(newer), older=likeness_of(older)) is Verdict.REPLACES


def same_fact(one: str, other: str) -> bool:
    return likeness_of(one).sense == likeness_of(other).sense


SOME_WORDS = (
    "TestCorp Dana owes pays me the a is not at on 9 10 9:00 5,000 ₪ $ INV-001 Monday may 5 -5 "
    "doesn't חייבת לא ב-9 יום שני , . ? 9-17 3% ² from to between and"
)
WORDS = st.sampled_from(SOME_WORDS.split())
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join))


@table(("one", "other"), FACTS["same"])
def test_the_same_fact(one: str, other: str) -> None:
    assert same_fact(one, other)
    assert not replaces(one, other)
    assert not replaces(other, one)


@table(("one", "other"), FACTS["other"])
def test_another_fact(one: str, other: str) -> None:
    assert not same_fact(one, other)


@given(TEXTS)
def test_a_text_tells_the_same_as_itself_and_replaces_nothing_of_it(text: str) -> None:
    assert same_fact(text, text)
    assert not replaces(text, text)


@given(TEXTS, TEXTS)
def test_it_does_not_matter_which_comes_first(one: str, other: str) -> None:
    assert same_fact(one, other) == same_fact(other, one)


@given(TEXTS, TEXTS)
def test_equal_facts_tell_the_same(one: str, other: str) -> None:
    if fact_key(one) == fact_key(other):
        assert same_fact(one, other)


@given(
    st.sampled_from(
        [
            "TestCorp owes me {}", "Room {} is free", "The price is ₪{}", "It opens at {}",
            "המחיר {} שקל", "{}", "from {} to 900", "INV-{} is paid", "{}% off", "-{} degrees",
            "May {} is free",
        ]
    ),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
)  # fmt: skip
def test_other_numbers_are_never_the_same_fact(text: str, one: int, other: int) -> None:
    if one != other:
        assert not same_fact(text.format(one), text.format(other))
        assert not same_fact(text.format(f"{one:,}"), text.format(other))


@given(TEXTS)
def test_a_negated_text_is_another_fact(text: str) -> None:
    assert not same_fact(text, f"{text} not so")


# When a newer text takes the place of an older one: a labelled table.


@table(("older", "newer"), FACTS["replaced"])
def test_the_newer_takes_the_olders_place(older: str, newer: str) -> None:
    assert replaces(newer, older)


@table(("older", "newer"), FACTS["beside"])
def test_both_stay(older: str, newer: str) -> None:
    assert not replaces(newer, older)
    assert not replaces(older, newer)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    assert replaces(one, other) == replaces(other, one)
