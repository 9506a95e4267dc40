"""Bounds and directions of the scores of memories."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from memoryproject.foundation.retrieval.query import query_terms
from memoryproject.foundation.retrieval.relevance import Mask, WeighedWords, chances, weigh_words
from memoryproject.foundation.text.terms import index_terms

WORDS = ["invoice", "TestCorp", "owes", "the", "status", "zeta", "5000", "מחיר"]
words = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
texts = st.lists(words, max_size=12)
cosines = st.floats(-1, 1) | st.just(float("nan"))


def weighed(question: str, sample: list[str]) -> WeighedWords:
    return weigh_words(query_terms(question), [index_terms(text) for text in sample])


def share(question: str, text: str, sample: list[str] | None = None) -> float:
    found = weighed(question, sample or [text])
    return float(found.shares(found.held_by([index_terms(text)]))[0])


def nothing(asked: WeighedWords, number: int) -> Mask:
    return np.zeros((number, len(asked.terms)), bool)


@given(words | st.text(max_size=60), st.lists(st.tuples(words, cosines), max_size=12))
def test_chances_are_between_0_and_1(question: str, pairs: list[tuple[str, float]]) -> None:
    asked = weighed(question, [text for text, _ in pairs])
    held = asked.held_by([index_terms(text) for text, _ in pairs])
    found = chances(np.array([near for _, near in pairs]), held, asked)

    assert len(found) == len(pairs)
    assert all(0 <= chance <= 1 for chance in found)


@given(words, texts)
def test_equal_texts_hold_as_much_wherever_they_stand(question: str, others: list[str]) -> None:
    asked = weighed(question, others)
    rows = ["TestCorp owes", *others, "TestCorp owes", *others, "TestCorp owes"]
    shares = asked.shares(asked.held_by([index_terms(text) for text in rows]))

    assert shares[0] == shares[len(others) + 1] == shares[-1]


@given(st.lists(st.sampled_from(WORDS), min_size=1, unique=True), st.data())
def test_one_more_word_never_holds_less(asked: list[str], data: st.DataObject) -> None:
    some = [word for word in asked if data.draw(st.booleans())]
    question = " ".join(asked)

    assert share(question, " ".join([*some, asked[0]])) >= share(question, " ".join(some))


def test_a_rare_word_tells_more_than_a_frequent_one() -> None:
    sample = ["a tulip"] * 90 + ["an orchid"]

    assert share("orchid tulip", "orchid", sample) > share("orchid tulip", "tulip", sample)


def test_grammar_hardly_counts() -> None:
    assert share("what is the price of it", "what is the colour of it") < 0.3


def test_an_empty_question_finds_nothing() -> None:
    asked = weighed("", ["TestCorp"])

    assert chances(np.array([0.9]), asked.held_by([["testcorp"]]), asked) == [0.0]


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_nearer_of_two_texts_is_never_behind(one: float, other: float) -> None:
    asked = weighed("where can I park?", [])
    near, far = chances(np.array([max(one, other), min(one, other)]), nothing(asked, 2), asked)

    assert near >= far


def test_a_usual_question_finds_its_fact_at_a_lower_cosine() -> None:
    asked = weighed("where can I park?", [])
    cosines, held = np.array([0.4, 0.2]), nothing(asked, 2)
    rare, usual = (chances(cosines, held, asked, usual=near)[0] for near in (-0.05, 0.05))

    assert usual > rare
