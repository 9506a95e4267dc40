"""Bounds and directions of the scores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.retrieval.query import LexicalQuery, Scope, query_terms, weigh_query
from memoryproject.foundation.retrieval.reranking import (
    chances,
    fused_log_odds,
    match_matrix,
    relevance_of,
    semantic_relevance,
)
from tests.unit.relevance.texts import Evidence, counted, semantics

WORDS = ["invoice", "testcorp", "owes", "the", "status", "zeta", "5000"]
probabilities = st.floats(0, 1)


counted_texts = st.lists(
    st.builds(
        Evidence,
        st.dictionaries(st.sampled_from(["testcorp", "owe", "the", "zeta"]), st.floats(0, 1e6)),
        st.floats(0, 1e6),
        st.none() | probabilities,
    ),
    max_size=12,
)


def asking(question: str, *, texts: int = 10, length: float = 10.0) -> LexicalQuery:
    terms = query_terms(question)
    return weigh_query(terms, Scope(texts, length, [1] * len(terms)))


def relevance_in(query: LexicalQuery, counts: Mapping[str, float], length: float) -> float:
    return float(
        relevance_of(query, match_matrix(query, counted([Evidence(counts, length, None)])))[0]
    )


def relevance(question: str, counts: Mapping[str, float]) -> float:
    return relevance_in(asking(question), counts, 10)


def match_by_formula(query: LexicalQuery, text: Evidence, place: int) -> float:
    """BM25 of one word in one text, as its source writes it."""
    k1, b = query.constants.saturation, query.constants.length_effect
    damping = k1 * min(1 - b + b * text.length / query.average_length, 3.0)
    found = [
        worth * (1 + k1) * text.counts[term] / (text.counts[term] + damping)
        for term, worth in query.terms[place][1]
        if text.counts.get(term, 0) > 0
    ]
    return max(found, default=0.0)


@given(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), counted_texts)
def test_all_texts_at_once_match_as_each_by_the_formula(
    question: str, texts: list[Evidence]
) -> None:
    query = asking(question)

    matches = match_matrix(query, counted(texts))

    assert matches.shape == (len(query.terms), len(texts))
    for column, text in enumerate(texts):
        for place in range(len(query.terms)):
            assert matches[place, column] == pytest.approx(match_by_formula(query, text, place))


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), counted_texts)
def test_equal_texts_are_equally_relevant_wherever_they_stand(
    question: str, texts: list[Evidence]
) -> None:
    said = Evidence({"testcorp": 1, "owe": 2}, 7, 0.3)
    query = asking(question)

    among = relevance_of(query, match_matrix(query, counted([said, *texts, said, *texts, said])))

    here = [0, len(texts) + 1, -1]
    assert len({float(among[place]) for place in here}) == 1


@given(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), counted_texts)
def test_no_text_has_a_chance_outside_of_0_and_1(question: str, texts: list[Evidence]) -> None:
    found = chances(asking(question), counted(texts), semantics(texts))

    assert len(found) == len(texts)
    assert all(0 <= chance <= 1 for chance in found)


@given(
    st.text(max_size=80),
    st.dictionaries(st.sampled_from(["testcorp", "owe", "the"]), st.floats(0, 1e6)),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.floats(0, 1e6),
)
def test_lexical_relevance_stays_between_0_and_1(
    text: str, counts: dict[str, float], texts: int, frequency: int, length: float
) -> None:
    terms = query_terms(text + " testcorp owes")
    scope = Scope(texts, length, [frequency] * len(terms))

    assert 0 <= relevance_in(weigh_query(terms, scope), counts, length) <= 1


@given(st.lists(st.sampled_from(WORDS), min_size=1), st.data())
def test_a_text_with_one_more_word_of_the_question_is_never_less_relevant(
    words: list[str], data: st.DataObject
) -> None:
    terms = query_terms(" ".join(words))
    counts = {term.word: 1.0 for term in terms if data.draw(st.booleans())}
    more = counts | {terms[0].word: 1.0}

    assert relevance(" ".join(words), more) >= relevance(" ".join(words), counts)


def test_nothing_shared_is_not_relevant_at_all() -> None:
    assert relevance("Tell me about TestCorp", {"acm": 1, "invoic": 1}) == 0


def test_a_long_text_counts_a_word_less_than_a_short_one() -> None:
    terms = query_terms("TestCorp invoices")
    query = weigh_query(terms, Scope(100, 10.0, [3, 30]))

    assert relevance_in(query, {"testcorp": 1}, 40) < relevance_in(query, {"testcorp": 1}, 10)


def test_a_rare_word_tells_more_than_a_frequent_one() -> None:
    terms = query_terms("Orchid Tulip")
    query = weigh_query(terms, Scope(100, 10.0, [1, 90]))

    assert relevance_in(query, {"orchid": 1}, 10) > relevance_in(query, {"tulip": 1}, 10)


def test_an_empty_question_finds_nothing() -> None:
    assert relevance_in(weigh_query([], Scope(0, 0.0, [])), {"testcorp": 1}, 5) == 0


def test_one_frequency_is_needed_for_each_term() -> None:
    with pytest.raises(ValueError, match="one frequency for each"):
        weigh_query(query_terms("TestCorp invoice"), Scope(10, 10.0, [1]))


def fused(words: float, vector: float | None) -> float:
    query = asking("TestCorp")
    return float(fused_log_odds(query, np.array([words]), np.array([vector], dtype=float))[0])


@given(probabilities, probabilities, probabilities, probabilities)
def test_the_fused_evidence_grows_with_both_sides(
    words: float, more_words: float, vector: float, more_vector: float
) -> None:
    low = fused(min(words, more_words), min(vector, more_vector))
    high = fused(max(words, more_words), max(vector, more_vector))

    assert low <= high


@given(probabilities)
def test_where_the_model_is_silent_the_words_decide_alone(words: float) -> None:
    assert fused(words, None) == fused(words, 0.5)


def test_the_calibration_is_even_at_its_midpoint() -> None:
    even, near, unknown = semantic_relevance(
        np.array([0.3, 0.5, np.nan]), midpoint=0.3, slope=10
    ).tolist()

    assert even == 0.5
    assert near > 0.8
    assert np.isnan(unknown)


def test_words_of_grammar_alone_are_no_match() -> None:
    assert relevance("what is the", {"what": 1, "is": 1, "the": 1}) < 0.7
