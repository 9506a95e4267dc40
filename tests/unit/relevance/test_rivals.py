"""Texts judged beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.retrieval.query import LexicalQuery, Scope, query_terms, weigh_query
from memoryproject.foundation.retrieval.reranking import chances
from tests.unit.relevance.store import Store
from tests.unit.relevance.texts import Evidence, counted, semantics

PLUMBER = "Yossi the plumber: 052-555-0177, comes only in the mornings"


def scores(texts: Sequence[str], question: str) -> dict[str, float]:
    return {text: score for score, text in Store(texts).ask(question)}


def weighed(question: str, texts: int) -> LexicalQuery:
    terms = query_terms(question)
    return weigh_query(terms, Scope(texts, 10.0, [1] * len(terms)))


@given(
    st.lists(
        st.builds(
            Evidence,
            counts=st.dictionaries(
                st.sampled_from(["plumber", "~plumber", "phone", "?phone", "maya"]),
                st.floats(0.1, 50),
            ),
            length=st.floats(0, 500),
            semantic=st.none() | st.floats(0, 1),
        ),
        max_size=20,
    ),
    st.sampled_from(["phone of the plumber", "what about Maya?", "ok, thanks", "", "מה המחיר?"]),
)
def test_any_texts_have_a_score_between_0_and_1(texts: list[Evidence], question: str) -> None:
    found = chances(weighed(question, len(texts)), counted(texts), semantics(texts))

    assert len(found) == len(texts)
    assert all(0 <= score <= 1 and math.isfinite(score) for score in found)


def test_a_message_about_nothing_finds_nothing() -> None:
    texts = [Evidence({"plumber": 1}, 5, 0.99)]

    found = chances(weigh_query([], Scope(1, 5.0, [])), counted(texts), semantics(texts))

    assert found.tolist() == [0.0]


def test_the_best_text_counts_less_beside_one_that_is_as_good() -> None:
    alone = scores([PLUMBER, "The lease ends in June"], "how much does the plumber take?")
    beside = scores(
        [PLUMBER, "Avi the plumber works for the landlord"], "how much does the plumber take?"
    )

    assert beside[PLUMBER] < alone[PLUMBER]


def test_of_texts_about_one_thing_that_with_the_kind_of_answer_is_first() -> None:
    price = "Quillon Print: 500 business cards cost $64"
    others = ["Quillon Print closes at four", "Quillon Print is next to the bank"]

    found = scores([*others, price], "how much does Quillon Print charge?")

    assert max(found, key=lambda text: found[text]) == price


def test_somebody_else_s_number_is_no_answer() -> None:
    number = "Dana's phone number is 050-555-0142"

    assert scores([number, PLUMBER], "what is Liora's phone number?")[number] < 0.7
    assert scores([number, PLUMBER], "what is Dana's phone number?")[number] >= 0.7


def test_a_question_for_a_name_alone_finds_all_about_it() -> None:
    about = ["TestCorp pays by the tenth", "TestCorp moved to Haifa", "Maya works at TestCorp"]

    found = scores([*about, "The lease ends in June"], "what do we know about TestCorp?")

    assert all(found[text] >= 0.7 for text in about)
    assert found["The lease ends in June"] < 0.7


def test_one_memory_alone_is_judged_like_one_of_many() -> None:
    """Nothing leads where nothing is asked for that it has."""
    assert scores([PLUMBER], "phone of the plumber")[PLUMBER] >= 0.7
    assert scores([PLUMBER], "when does the lease end?")[PLUMBER] < 0.7
    assert scores([PLUMBER], "who comes in the evening?")[PLUMBER] < 0.7
