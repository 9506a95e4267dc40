"""How what was said is judged with what was said around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, strategies as st

from memoryproject.foundation.retrieval.message_features import (
    WITH_VECTORS,
    Lines,
    Scorer,
    count_news,
    everyday_words,
    features_of,
    hold_specifics,
    speaker_named,
    statements_of,
)
from memoryproject.foundation.retrieval.query import query_terms, text_without
from memoryproject.foundation.retrieval.relevance import weigh_words
from memoryproject.foundation.text.terms import index_terms
from tests.tables import table

QUESTION = "What is Liora allergic to?"


@dataclass(frozen=True)
class Line:
    """A line of a conversation. ``topic``: None without a vector."""

    text: str
    topic: float | None = -2.0
    segment: int = 0
    speaker: str = ""
    period_fit: float = 0.0


def chances(
    lines: list[Line], question: str = QUESTION, judge: Scorer = WITH_VECTORS
) -> list[float]:
    terms = [index_terms(line.text) for line in lines]
    words = weigh_words(query_terms(question), [])
    given_lines = Lines(
        held=words.held_by(terms),
        topics=np.array([line.topic for line in lines], dtype=float),
        segments=np.array([line.segment for line in lines], np.int64),
        speakers=[line.speaker for line in lines],
        period_fits=np.array([line.period_fit for line in lines], dtype=float),
        statements=statements_of([line.text for line in lines], [line.speaker for line in lines]),
    )
    found: list[float] = judge.chances(features_of(question, words, given_lines)).tolist()
    return found


@table(
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
    lines = [Line(text, segment=place // 3) for place, text in enumerate(texts)]
    assert all(0.0 <= chance <= 1.0 for chance in chances(lines, question))


def test_a_word_is_news_once() -> None:
    texts = ["The lamp is red", "the LAMP is new", "", "是红色的灯", "红色", "The lamp"]
    news = count_news(texts, ["Dana"] * 5 + ["Omer"])
    assert np.expm1(news).round().tolist() == [4, 1, 0, 5, 0, 2]


@table(
    ("text", "specific"),
    [
        ("I was in Chicago, it was great", 1.0),
        ("Thanks, Dana! I am so glad", 0.0),
        ("It costs 5", 1.0),
        ("Она живёт в Киеве", 1.0),
        ("זה היה נהדר", 0.5),
        ("זה עולה 5", 1.0),
        ("", 0.5),
    ],
)
def test_which_lines_hold_a_name_or_a_number(text: str, specific: float) -> None:
    assert hold_specifics([text], ["Dana Levi", "dana"]).tolist() == [specific]


def test_of_lines_on_one_topic_the_one_with_the_fact_is_first() -> None:
    talk = [
        "Thanks, that city is great!",
        "My city is great, thanks!",
        "That city is Chicago, thanks",
    ]
    lines = [Line(text, topic=0.5, segment=place) for place, text in enumerate(talk)]
    assert np.argmax(chances(lines, "Which cities has Dana been to?")) == 2
