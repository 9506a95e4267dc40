"""Bounds and directions of the scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.retrieval.query import query_terms
from memoryproject.foundation.retrieval.relevance import (
    Scope,
    fused_log_odds,
    semantic_relevance,
    weigh_query,
)

WORDS = ["invoice", "testcorp", "owes", "the", "status", "zeta", "5000"]
probabilities = st.floats(0, 1)


def relevance(question: str, counts: dict[str, float], *, texts: int = 10) -> float:
    terms = query_terms(question)
    query = weigh_query(terms, Scope(texts, 10.0, [1] * len(terms)))
    return query.relevance(counts, 10)


@given(
    st.text(max_size=80),
    st.dictionaries(st.sampled_from(["testcorp", "owe", "the"]), st.floats(0, 1e6)),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.floats(0, 1e6),
)
def test_lexical_relevance_stays_between_0_and_1(text, counts, texts, frequency, length):
    terms = query_terms(text + " testcorp owes")
    scope = Scope(texts, length, [frequency] * len(terms))

    assert 0 <= weigh_query(terms, scope).relevance(counts, length) <= 1


@given(st.lists(st.sampled_from(WORDS), min_size=1), st.data())
def test_a_text_with_one_more_word_of_the_question_is_never_less_relevant(words, data):
    terms = query_terms(" ".join(words))
    counts = {term.word: 1.0 for term in terms if data.draw(st.booleans())}
    more = counts | {terms[0].word: 1.0}

    assert relevance(" ".join(words), more) >= relevance(" ".join(words), counts)


def test_nothing_shared_is_not_relevant_at_all():
    assert relevance("Tell me about TestCorp", {"acm": 1, "invoic": 1}) == 0


def test_a_long_text_counts_a_word_less_than_a_short_one():
    terms = query_terms("TestCorp invoices")
    query = weigh_query(terms, Scope(100, 10.0, [3, 30]))

    assert query.relevance({"testcorp": 1}, 40) < query.relevance({"testcorp": 1}, 10)


def test_a_rare_word_tells_more_than_a_frequent_one():
    terms = query_terms("Orchid Tulip")
    query = weigh_query(terms, Scope(100, 10.0, [1, 90]))

    assert query.relevance({"orchid": 1}, 10) > query.relevance({"tulip": 1}, 10)


def test_an_empty_question_finds_nothing():
    assert weigh_query([], Scope(0, 0.0, [])).relevance({"testcorp": 1}, 5) == 0


def test_one_frequency_is_needed_for_each_term():
    with pytest.raises(ValueError, match="one frequency for each"):
        weigh_query(query_terms("TestCorp invoice"), Scope(10, 10.0, [1]))


@given(probabilities, probabilities, probabilities, probabilities)
def test_the_fused_evidence_grows_with_both_sides(words, more_words, vector, more_vector):
    low = fused_log_odds(min(words, more_words), min(vector, more_vector))
    high = fused_log_odds(max(words, more_words), max(vector, more_vector))

    assert low <= high


@given(probabilities)
def test_where_the_model_is_silent_the_words_decide_alone(words):
    assert fused_log_odds(words, None) == fused_log_odds(words, 0.5)


def test_the_calibration_is_even_at_its_midpoint():
    assert semantic_relevance(0.3, midpoint=0.3, slope=10) == 0.5
    assert semantic_relevance(0.5, midpoint=0.3, slope=10) > 0.8


def test_words_of_grammar_alone_are_no_match():
    assert relevance("what is the", {"what": 1, "is": 1, "the": 1}) < 0.7
