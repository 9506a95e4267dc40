"""Which questions a message holds."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, strategies as st

from memoryproject.foundation.retrieval.subqueries import (
    MAX_PARTS,
    MENTIONED_WITHIN,
    asks_for_all,
    best_fit,
    periods_asked,
    question_parts,
)
from tests.tables import table


@table(
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


@table(
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


@table("piece", ["and ", "what ", ", and ", "who, ", "a", "ו", "?", ". what"])
def test_long_texts_are_bounded(piece: str) -> None:
    parts = question_parts(piece * 100_000)

    assert sum(map(len, parts)) <= 40_000


# The days that a question names.


TODAY = date(2026, 11, 21)


def spans(question: str) -> list[tuple[str, str]]:
    found = periods_asked(question, today=TODAY)
    return [(str(period.first), str(period.last)) for period in found]


@table(
    ("question", "first", "last"),
    [
        ("What happened in May 2023?", "2023-05-01", "2023-05-31"),
        ("on October 13, 2023?", "2023-10-13", "2023-10-13"),
        ("on 13 October 2023", "2023-10-13", "2023-10-13"),
        ("the 3rd of March 2024", "2024-03-03", "2024-03-03"),
        ("what did I say last May?", "2026-05-01", "2026-05-31"),
        ("and last December?", "2025-12-01", "2025-12-31"),
        ("in Feb 2024", "2024-02-01", "2024-02-29"),
        ("on 2026-01-05", "2026-01-05", "2026-01-05"),
        ("yesterday?", "2026-11-20", "2026-11-20"),
        ("מה אמרתי אתמול?", "2026-11-20", "2026-11-20"),
        ("מה סיכמנו במרץ 2025", "2025-03-01", "2025-03-31"),
        ("ב-3 במאי 2025", "2025-05-03", "2025-05-03"),
        ("in 2022", "2022-01-01", "2022-12-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("בשנה שעברה", "2025-01-01", "2025-12-31"),
    ],
)
def test_periods_are_read(question: str, first: str, last: str) -> None:
    assert spans(question) == [(first, last)]


@table(
    "question", ["may I ask?", "we march on", "invoice 20231", "call 2023-99-99", "", "31 apples"]
)
def test_what_names_no_day(question: str) -> None:
    assert spans(question) == []


def test_a_month_without_a_year_is_that_of_any_year() -> None:
    periods = periods_asked("When did we go camping in June?", today=TODAY)
    assert best_fit(periods, date(2024, 6, 30)) == 1.0
    assert best_fit(periods, date(2025, 6, 1)) == 1.0
    assert best_fit(periods, date(2025, 5, 31)) == 0.0


def test_what_is_told_soon_after_counts_less_and_less() -> None:
    periods = periods_asked("in May 2023", today=TODAY)
    soon, later = best_fit(periods, date(2023, 6, 2)), best_fit(periods, date(2023, 6, 10))
    assert 1.0 > soon > later > 0.0
    assert best_fit(periods, date(2023, 5, 31 - MENTIONED_WITHIN + MENTIONED_WITHIN)) == 1.0
    assert best_fit(periods, date(2023, 6, 30)) == 0.0


def test_december_reaches_into_january() -> None:
    periods = periods_asked("in December", today=TODAY)
    assert best_fit(periods, date(2025, 1, 3)) > 0.0


def test_the_29th_of_february_fits_in_any_year() -> None:
    periods = periods_asked("on February 29", today=TODAY)
    assert best_fit(periods, date(2024, 2, 29)) == 1.0
    assert best_fit(periods, date(2023, 2, 28)) == 1.0


@given(st.text(max_size=120), st.dates(min_value=date(1990, 1, 1), max_value=date(2090, 1, 1)))
def test_any_text_and_any_day_give_a_share(question: str, day: date) -> None:
    assert 0.0 <= best_fit(periods_asked(question, today=TODAY), day) <= 1.0


@table(
    ("several", "one"),
    [
        ("Which cities has Dana been to?", "Which city is Dana's class in?"),
        ("how  many times did we order?", "how long does it take?"),
        ("what did you send so far", "what does this bus cost"),
        ("Where have they camped?", "Where is the bus, and why is it late"),
        ("אילו עוגות הזמנתי?", "מה המחיר של העוגה?"),
        ("איזה צבעים יש?", "איזה צבע הזמנתי?"),
        ("¿Cuáles son mis pedidos?", "¿Cuál es el precio?"),
        ("Quais bolos a Dana pediu?", "Até que horas vocês abrem?"),
        ("Quelles villes a-t-elle visitées ?", "Quelle est votre adresse ?"),
        ("Welche Städte kennt sie? Wie oft war sie da?", "Wie lange dauert es?"),
        ("Quali torte ha ordinato?", "Quanto costa la torta?"),
        ("Какие торты мы заказывали?", "Во сколько вы закрываетесь?"),
        ("Які торти ми замовляли?", "Скільки коштує торт?"),
        ("ما هي الطلبات التي طلبناها؟", "ما هي الساعة؟"),
    ],
)
def test_which_questions_ask_for_several_things(several: str, one: str) -> None:
    assert asks_for_all(several)
    assert not asks_for_all(one)
