"""How what was said is judged with what was said around it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.retrieval.message_features import (
    BY_WORDS,
    REACH,
    WINDOW,
    WITH_VECTORS,
    Line,
    Scorer,
    everyday_words,
    features_of,
    speaker_named,
)
from memoryproject.foundation.retrieval.query import query_terms, text_without
from memoryproject.foundation.retrieval.relevance import Scope, weigh_query
from memoryproject.foundation.text.terms import index_text

QUESTION = "What is Liora allergic to?"
SAID = "My daughter Liora is allergic to walnuts"


def line(text: str, *, topic: float | None = -2.0, segment: int = 0, **changes: object) -> Line:
    indexed = index_text(text)
    made = Line(text, Counter(indexed.terms), indexed.length, topic, segment)
    return replace(made, **changes)  # type: ignore[arg-type]


def chances(
    lines: list[Line], question: str = QUESTION, judge: Scorer = WITH_VECTORS
) -> list[float]:
    terms = query_terms(question)
    query = weigh_query(terms, Scope(len(lines), 6.0, [1] * len(terms)))
    found: list[float] = judge.chances(features_of(question, query, lines)).tolist()
    return found


def test_the_line_that_says_it_is_surely_relevant_and_others_are_not() -> None:
    said, *others = chances([line(SAID, topic=2.0), *[line("See you tomorrow")] * 12])
    assert said > 0.7
    assert max(others[WINDOW:]) < 0.1


def test_an_answer_is_found_by_its_question() -> None:
    lines = [line("So what can't Liora eat?"), line("Walnuts, she is allergic"), line("I see")]
    alone = chances([line("Good evening"), line("Walnuts, she is allergic"), line("I see")])
    assert chances(lines)[1] > alone[1]


def test_lines_of_another_run_of_talk_lend_nothing() -> None:
    beside = chances([line(SAID, topic=2.0), line("Yes, walnuts")])
    apart = chances([line(SAID, topic=2.0), line("Yes, walnuts", segment=1)])
    assert apart[1] < beside[1]


def test_lines_out_of_reach_lend_nothing() -> None:
    filler = [line("Nothing of interest") for _ in range(REACH)]
    assert chances([line(SAID, topic=2.0), *filler, line("Far away")])[-1] == pytest.approx(
        chances([line("Nothing of interest"), *filler, line("Far away")])[-1], rel=0.05
    )


def test_whom_the_question_names_counts_before_the_other_speaker() -> None:
    text = "is allergic to walnuts"
    dana, omer = line(f"Dana: {text}", speaker="Dana"), line(f"Omer: {text}", speaker="Omer")
    asked = chances([dana, omer], "What is Dana allergic to?")
    assert asked[0] > asked[1]
    both = chances([dana, omer], "What are Dana and Omer allergic to?")
    assert both[0] == pytest.approx(both[1], rel=0.1)


def test_the_period_that_is_asked_for_counts() -> None:
    in_may, in_july = line(SAID, period_fit=1.0), line(SAID)
    assert chances([in_may, in_july])[0] > chances([in_may, in_july])[1]


def test_who_asks_when_gets_lines_that_tell_a_time() -> None:
    lines = [line("We went camping last week"), line("We went camping with the dog")]
    when = chances(lines, "When did we go camping?")
    who = chances(lines, "Who went camping?")
    assert when[0] - when[1] > who[0] - who[1]


def test_questions_tell_less_than_statements() -> None:
    asks, tells = chances(
        [line("Is Liora allergic to walnuts?"), line("Liora is allergic to nuts")]
    )
    assert tells > asks


def test_without_a_vector_the_words_decide() -> None:
    lines = [line(SAID, topic=None), *[line("See you tomorrow", topic=None)] * 12]
    said, *others = chances(lines, judge=BY_WORDS)
    assert said > 0.7
    assert max(others[WINDOW:]) < 0.1


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Dana: hello", "Dana"),
        ("דנה: שלום", "דנה"),
        ("Dana Levi: hello", "Dana Levi"),
        ("hello", ""),
        ("12:30 is fine", ""),
        ("https://example.com is: nice", ""),
        ("x" * 60 + ": hello", ""),
    ],
)
def test_who_a_line_says_that_it_is_from(text: str, speaker: str) -> None:
    assert speaker_named(text) == speaker


def test_names_that_are_everywhere_are_left_out_of_what_is_embedded() -> None:
    terms = query_terms("What did Dana research?")
    everyday = everyday_words(terms, [0, 90, 150, 2][: len(terms)], 300)
    assert text_without("What did Dana research?", everyday).split() == ["What", "did", "research?"]


def test_in_a_few_lines_nothing_is_everyday() -> None:
    terms = query_terms("Dana?")
    assert everyday_words(terms, [3] * len(terms), 3) == set()


def test_a_question_of_such_names_alone_stays_as_it_is() -> None:
    assert text_without("And Dana?", {"dana"}) == "And Dana?"


@given(st.lists(st.text(max_size=60), max_size=12), st.text(max_size=60))
def test_any_texts_give_chances(texts: list[str], question: str) -> None:
    if not texts:
        return
    lines = [line(text, segment=place // 3) for place, text in enumerate(texts)]
    assert all(0.0 <= chance <= 1.0 for chance in chances(lines, question))
