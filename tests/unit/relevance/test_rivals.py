"""Texts judged beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.relevance.store import Store

PLUMBER = "Yossi the plumber: 052-555-0177, comes only in the mornings"


def scores(texts: Sequence[str], question: str) -> dict[str, float]:
    return {text: score for score, text in Store(texts).ask(question)}


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
