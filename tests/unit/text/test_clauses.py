"""Which questions a message holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.retrieval.subqueries import MAX_PARTS, question_parts


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("When is it on, and who bakes?", ["When is it on", "and who bakes?"]),
        ("do you deliver and is there parking?", ["do you deliver", "and is there parking?"]),
        ("Where is he? And who has it?", ["Where is he?", "Where is he? And who has it?"]),
        ("I come tomorrow, what's the code?", ["what's the code?"]),
        ("Before I go: until when are you open?", ["until when are you open?"]),
        ("It rained all day. Tell me about Acme. Bye!", ["Tell me about Acme."]),
        ("מתי הפגישה, ואיפה חונים?", ["מתי הפגישה", "ואיפה חונים?"]),
        ("מתי הפגישה וכמה עולה החדר?", ["מתי הפגישה", "וכמה עולה החדר?"]),
        ("היה נעים מאוד אתמול. מי מביא את הלחם? תודה!", ["מי מביא את הלחם?"]),
        ("באיזה יום באים, ועד מתי?", ["באיזה יום באים", "ועד מתי?"]),
    ],
)  # fmt: skip
def test_questions_are_taken_apart(message: str, parts: list[str]) -> None:
    assert question_parts(message) == parts


@pytest.mark.parametrize(
    "message",
    [
        "",
        "?",
        "What's the status with TestCorp?",
        "What about Acme, BlueSky and Globex?",
        "TestCorp owes me 5,000, the invoice is INV-001.",
        "do you know what the code is",
        "Write to dana@shop.example, please",
        "מה המצב עם אקמי, גלבוע וכרמל?",
        "ראיתי את דנה ומיכל בחנות",
    ],
)
def test_one_question_stays_whole(message: str) -> None:
    assert question_parts(message) == []


@pytest.mark.parametrize(
    "message",
    ["Hi! How are you, and how was the trip? See you.", "היי, מה נשמע, ואיך היה החופש? נדבר!"],
)
def test_small_talk_asks_for_nothing(message: str) -> None:
    assert question_parts(message) == []


@given(st.text(alphabet=" ,.?!\nandwho מתיו", max_size=300))
def test_any_text_has_few_parts_and_each_says_something(text: str) -> None:
    parts = question_parts(text)

    assert len(parts) <= MAX_PARTS
    assert all(part.strip() for part in parts)


@pytest.mark.parametrize("piece", ["and ", "what ", ", and ", "who, ", "a", "ו", "?", ". what"])
def test_long_texts_are_bounded(piece: str) -> None:
    parts = question_parts(piece * 100_000)

    assert sum(map(len, parts)) <= 40_000
