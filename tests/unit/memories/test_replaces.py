"""When a newer text takes the place of an older one: a labelled table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories_app.facts.facts import replaces

# The older, then the newer.
REPLACED = [
    ("The price is 35", "The price is 40"),
    ("the price is 35", "The price is now 40"),
    ("The price is ₪35", "The new price is ₪40"),
    ("The price is 35", "The price went up to 40"),
    ("The price of a haircut is 35", "The price of a haircut was raised to 40 shekels"),
    ("A haircut costs 35", "A haircut costs 40"),
    ("TestCorp owes me ₪5000", "TestCorp owes me ₪3,000"),
    ("TestCorp owes me 5000 from invoice INV-001", "TestCorp owes me 4000 from invoice INV-001"),
    ("The shop opens at 9", "The shop opens at 10"),
    ("The shop opens at 9 on Sunday", "The shop opens at 10 on Sunday"),
    ("We're open from 9 to 17", "We are open from 9 to 18"),
    ("The meeting with Dana is on Monday", "The meeting with Dana is on Tuesday"),
    ("The meeting with Dana is on Monday", "The meeting with Dana moved to Tuesday"),
    ("The course starts on May 5", "The course starts on May 12"),
    ("Delivery takes 3 days", "Delivery takes 5 days"),
    ("Dana has 2 dogs", "Dana has 3 dogs"),
    ("The CEO of TestCorp is John Smith", "The CEO of TestCorp is Dana Levi"),
    ("TestCorp's CEO is John", "TestCorp's CEO is Dana"),
    ("Dana's phone number is 050-1234567", "Dana's phone number is 050-7654321"),
    ("Dana's favorite color is blue", "Dana's favorite color is green"),
    ("Dana's email is dana@test.com", "Dana's email is levi@test.com"),
    ("The wifi password: alpha1", "The wifi password: beta2"),
    ("Dana likes sushi", "Dana doesn't like sushi"),
    ("Dana doesn't like sushi", "Dana likes sushi"),
    ("The shop is open on Friday", "The shop is closed on Friday"),
    ("Invoice INV-001 is unpaid", "Invoice INV-001 is paid"),
    ("Invoice INV-001 is not paid", "Invoice INV-001 is paid"),
    ("There is parking", "There is no parking"),
    ("TestCorp owes me money", "TestCorp no longer owes me money"),
    ("Dana is in the office", "Dana isn't in the office"),
    ("המחיר הוא 35", "המחיר הוא 40"),
    ("המחיר 35 ש\"ח", "המחיר עכשיו 40 ש\"ח"),
    ("תספורת עולה 35", "תספורת עולה 40 שקלים"),
    ("החנות נפתחת ב-9", "החנות נפתחת ב-10"),
    ("החנות פתוחה ביום שישי", "החנות סגורה ביום שישי"),
    ("דנה אוהבת סושי", "דנה לא אוהבת סושי"),
    ("יש חניה ליד החנות", "אין חניה ליד החנות"),
    ("טסטקורפ חייבת לי 5000", "טסטקורפ חייבת לי 3000"),
    ("מנכ\"ל טסטקורפ הוא דני", "מנכ\"ל טסטקורפ הוא יוסי"),
    ("הקורס מתחיל ביום שני", "הקורס מתחיל ביום שלישי"),
]  # fmt: skip
BESIDE = [
    ("invoice INV-001 is 500", "invoice INV-002 is 700"),
    ("invoice 1001 is 500", "invoice 1002 is 700"),
    ("TestCorp owes 5000 from invoice INV-001", "TestCorp owes 5000 from invoice INV-002"),
    ("TestCorp owes 5000 from invoice INV-001", "TestCorp owes 4000 from invoice INV-002"),
    ("Meeting with Dana on Monday", "Meeting with Dana on Tuesday"),
    ("The shop is closed on Saturday", "The shop is closed on Sunday"),
    ("The shop opens at 9 on Sunday", "The shop opens at 10 on Monday"),
    ("The shop opens at 9", "The shop closes at 10"),
    ("Size 40 is in stock", "Size 41 is in stock"),
    ("6 apples cost 10", "8 apples cost 10"),
    ("6 apples cost 10", "8 apples cost 13"),
    ("Dana paid 500", "Dana paid 700"),
    ("I met Dana on Monday", "I met Dana on Tuesday"),
    ("Dana is a lawyer", "Dana is tall"),
    ("Dana is from Haifa", "Dana is 40"),
    ("The CEO is John", "The CEO is John Smith"),
    ("The CEO of TestCorp is John", "The CEO of OtherCorp is Dana"),
    ("The manager of the Haifa branch is Yossi", "The manager of the Eilat branch is Avi"),
    ("Dana's phone is 050-1234567", "Dana's phone is also 050-7654321"),
    ("Dana has 2 dogs", "Dana has 3 cats"),
    ("Dana likes sushi", "Dana likes pizza"),
    ("Dana likes sushi", "Yossi doesn't like sushi"),
    ("He owes me 500", "He owes me 700"),
    ("It costs 40", "It costs 50"),
    ("Not all rooms have a view", "All rooms have a view"),
    ("The price may be 40", "The price may be 50"),
    ("If it rains the price is 40", "If it rains the price is 50"),
    ("The price is 40 before May", "The price is 50 before May"),
    ("Room 5 is free", "Room 6 is free"),
    ("The price is 40", "The price is ₪40"),
    ("The shop opens at 9", "The shop opens at 9 am"),
    ("A table for 4 costs 100", "A table for 6 costs 150"),
    ("The price is 40 and the weight is 3", "The price is 50 and the weight is 4"),
    ("דנה שילמה 500", "דנה שילמה 700"),
    ("פגישה עם דנה ביום שני", "פגישה עם דנה ביום שלישי"),
    ("חשבונית 1001 היא 500", "חשבונית 1002 היא 700"),
    ("הוא חייב לי 500", "הוא חייב לי 700"),
    ("דנה אוהבת סושי", "יוסי לא אוהב סושי"),
    ("החנות סגורה ביום שישי", "החנות סגורה ביום שבת"),
    ("המחיר לגבר 40", "המחיר לאישה 60"),
]  # fmt: skip


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_the_newer_takes_the_olders_place(older: str, newer: str) -> None:
    assert replaces(newer, older)


@pytest.mark.parametrize(("older", "newer"), BESIDE)
def test_both_stay(older: str, newer: str) -> None:
    assert not replaces(newer, older)
    assert not replaces(older, newer)


def test_the_table_has_what_it_takes() -> None:
    assert len(REPLACED) + len(BESIDE) >= 60


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_can_be_compared(one: str, other: str) -> None:
    assert replaces(one, other) == replaces(other, one)
