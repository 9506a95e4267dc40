"""When two texts tell the same fact: a labelled table, and what must hold for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories_app.facts.facts import fact_key, likeness_of, replaces


def same_fact(one: str, other: str) -> bool:
    return likeness_of(one).sense == likeness_of(other).sense


SAME = [
    ("TestCorp owes me ₪5000", "TestCorp owes me ₪ 5,000."),
    ("TestCorp owes me ₪5000", "testcorp OWES me 5000 ₪"),
    ("TestCorp owes me 5,000 NIS", "TestCorp owes me ₪5000.00"),
    ("TestCorp owes me 5000 shekels", "TestCorp owes me ₪5,000"),
    ("The price is $40", "The price is 40 dollars"),
    ("The price is 40 euros!", "the price is €40"),
    ("The shop opens at 9", "Shop opens at 9:00"),
    ("The shop opens at 09:00", "The shop opens at 9:00."),
    ("The shop closes at 9 pm", "The shop closes at 21:00"),
    ("Open from 9 to 17", "Open 9-17"),
    ("Open between 9 and 17", "Open 9–17"),
    ("Open 9:00-17:00", "Open from 9:00 until 17:00"),
    ("We are closed on Monday", "On Monday we're closed"),
    ("Dana doesn't eat meat", "Dana does not eat meat"),
    ("Dana doesn’t eat meat", "Dana doesn't eat meat"),
    ("Dana can't come", "Dana cannot come."),
    ("It's raining", "It is raining"),
    ("Dana's birthday is on May 5", "Dana's birthday is 5 May"),
    ("Dana's birthday is May 5th", "Dana's birthday is the 5th of May"),
    ("The contract ends January 10, 2026", "The contract ends on 10 January 2026"),
    ("Remember that Dana likes tea", "Dana likes tea"),
    ("Dana still likes tea", "Dana likes tea"),
    ("The discount is 5%", "Discount is 5 percent"),
    ("Dana  likes\n tea", " dana likes tea... "),
    ("Café Testo is near", "Cafe\u0301 Testo is near"),
    ("invoice INV-001 is paid", "Invoice inv-001 is paid"),
    ("Dana has two dogs", "Dana has 2 dogs"),
    ("המחיר הוא 40 ש\"ח", "המחיר הוא ₪40"),
    ("המחיר 40 שקלים", "המחיר הוא 40 ₪."),
    ("החנות נפתחת ב-9", "החנות נפתחת ב 9:00"),
    ("החנות סגורה ביום שני", "ביום שני החנות סגורה"),
    ("מנכ\"ל החברה הוא דני", "מנכ״ל החברה הוא דני"),
    ("שָׁלוֹם לך", "שלום לך"),
    ("הספק משלם בתוך 30 יום", "הספק  משלם בתוך 30 יום!"),
    ("יום ההולדת של דנה ב-5 במאי", "יום ההולדת של דנה 5 מאי"),
]  # fmt: skip
OTHER = [
    ("The shop opens at 9", "The shop opens at 10"),
    ("Dana likes tea", "Dana doesn't like tea"),
    ("Dana likes tea", "Dana never likes tea"),
    ("invoice INV-001 is 500", "invoice INV-002 is 500"),
    ("TestCorp owes me ₪5000", "TestCorp owes me $5000"),
    ("TestCorp owes me 5000", "I owe TestCorp 5000"),
    ("Dana manages Yossi", "Yossi manages Dana"),
    ("Flight from Rome to Paris", "Flight from Paris to Rome"),
    ("Pay before 9", "Pay after 9"),
    ("Coffee with sugar", "Coffee without sugar"),
    ("My car is red", "Your car is red"),
    ("The shop is open on Monday", "The shop is open on Tuesday"),
    ("Closed on Monday, open on Tuesday", "Open on Monday, closed on Tuesday"),
    ("The temperature is -5", "The temperature is 5"),
    ("The discount is 5%", "The discount is 5"),
    ("The area is 10²", "The area is 102"),
    ("x ≠ y", "x = y"),
    ("Version 1.2", "Version 1.3"),
    ("Version 1.000", "Version 1"),
    ("Agent 007", "Agent 7"),
    ("Dana was a manager", "Dana is a manager"),
    ("Is Dana a manager?", "Dana is a manager"),
    ("All rooms have a view", "Some rooms have a view"),
    ("The shop closes at 9 am", "The shop closes at 9 pm"),
    ("Meeting by Monday", "Meeting on Monday"),
    ("In 5 minutes", "At 5 minutes"),
    ("Dana or Yossi comes", "Dana and Yossi come"),
    ("👍", "👎"),
    ("TestCorp owes 5000 from invoice INV-001", "TestCorp owes 5000 from invoice INV-002"),
    ("Dana@test.com", "Dina@test.com"),
    ("+972 50 123 4567 is Dana", "+972 50 123 4568 is Dana"),
    ("דנה אוהבת תה", "דנה לא אוהבת תה"),
    ("יש חניה", "אין חניה"),
    ("החנות נפתחת ב-9", "החנות נפתחת ב-10"),
    ("החנות סגורה ביום שני", "החנות סגורה ביום שלישי"),
    ("הוא חייב לי 500", "היא חייבת לי 500"),
    ("דני חייב ליוסי 500", "יוסי חייב לדני 500"),
    ("המחיר הוא 40 ש\"ח", "המחיר הוא 40 דולר"),
]  # fmt: skip
SOME_WORDS = (
    "TestCorp Dana owes pays me the a is not at on 9 10 9:00 5,000 ₪ $ INV-001 Monday may 5 -5 "
    "doesn't חייבת לא ב-9 יום שני , . ? 9-17 3% ² from to between and"
)
WORDS = st.sampled_from(SOME_WORDS.split())
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_fact(one: str, other: str) -> None:
    assert same_fact(one, other)
    assert not replaces(one, other)
    assert not replaces(other, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_fact(one: str, other: str) -> None:
    assert not same_fact(one, other)


def test_the_table_has_what_it_takes() -> None:
    assert len(SAME) + len(OTHER) >= 60


@given(TEXTS)
def test_a_text_tells_the_same_as_itself_and_replaces_nothing_of_it(text: str) -> None:
    assert same_fact(text, text)
    assert not replaces(text, text)


@given(TEXTS, TEXTS)
def test_it_does_not_matter_which_comes_first(one: str, other: str) -> None:
    assert same_fact(one, other) == same_fact(other, one)


@given(TEXTS, TEXTS)
def test_equal_facts_tell_the_same(one: str, other: str) -> None:
    if fact_key(one) == fact_key(other):
        assert same_fact(one, other)


@given(
    st.sampled_from(
        [
            "TestCorp owes me {}", "Room {} is free", "The price is ₪{}", "It opens at {}",
            "המחיר {} שקל", "{}", "from {} to 900", "INV-{} is paid", "{}% off", "-{} degrees",
            "May {} is free",
        ]
    ),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
)  # fmt: skip
def test_other_numbers_are_never_the_same_fact(text: str, one: int, other: int) -> None:
    if one != other:
        assert not same_fact(text.format(one), text.format(other))
        assert not same_fact(text.format(f"{one:,}"), text.format(other))


@given(TEXTS)
def test_a_negated_text_is_another_fact(text: str) -> None:
    assert not same_fact(text, f"{text} not so")
