"""The rules about a model's answer, for any text."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from sessions_app.extraction.extraction_prompt import FactsFormError
from sessions_app.extraction.fact_store import is_carried, quoted_in
from sessions_app.extraction.facts_form import read_facts
from tests.tables import table

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(
    st.text() | ANY_JSON.map(json.dumps) | ANY_JSON.map(lambda each: json.dumps({"facts": each}))
)
def test_any_answer_is_read_or_refused(answer: str) -> None:
    try:
        facts = read_facts(answer)
    except FactsFormError:
        return
    assert all(fact.content and 0 <= fact.confidence <= 1 for fact in facts)


@given(st.text())
def test_a_text_that_says_anything_quotes_itself(text: str) -> None:
    found = quoted_in(text, ["something else", text])
    if any(character.isalnum() for character in text):
        assert found is not None


@table(
    ("quote", "text", "is_there"),
    [
        ("own a boat", "I own a boat.", True),
        ("own  a\nboat", "I own a boat.", True),
        ("I own a boat.", "I own a\u00a0boat.", True),
        ("אני גר בחיפה", "אני\u200f גר בחיפה, ואתה?", True),
        ("own a boat", "I own a boathouse", False),
        ("Own a boat", "I own a boat", False),
        ("own boat", "I own a boat", False),
        ("!", "I own a boat!", False),
        ("(050) 12", "call (050) 12 now", True),
    ],
)
def test_a_quote_stands_word_for_word(quote: str, text: str, is_there: bool) -> None:
    assert (quoted_in(quote, [text]) is not None) is is_there


@table(
    ("content", "said", "question", "carried"),
    [
        ("Dana is allergic to peanuts", "I'm allergic to peanuts", "", True),
        ("The wedding is on 2030-05-31", "the wedding is tomorrow", "", True),
        ("דנה אלרגית לבוטנים", "אני אלרגית לבוטנים", "", True),
        ("דנה גרה בחיפה", "גרה עכשיו בעיר חיפה", "", True),
        ("Dana wants delivery on Tuesday", "yes, on Tuesday", "Shall we make a delivery?", False),
        ("Dana's budget is 5000", "yes", "Is the budget 5000?", False),
        ("The rent is 4000 shekels", "I see", "", False),
        ("It is so", "it is so", "", False),
    ],
)
def test_own_words_carry_a_fact(content: str, said: str, question: str, carried: bool) -> None:
    assert is_carried(content, texts=[said, "Dana"], question=question) is carried
