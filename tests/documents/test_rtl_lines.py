"""Hebrew of a PDF in reading order: what pypdf makes of pages that Chromium printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.integrations.documents.pdf import in_reading_order

LINES = [
    ('. שקל, כולל מע"מ100 המחיר הוא', 'המחיר הוא 100 שקל, כולל מע"מ.'),
    (" יום )שוטף(.30  משלמת תוךTestCorp חברת", "חברת TestCorp משלמת תוך 30 יום (שוטף)."),
    ("English with שלום עולם inside.", "English with שלום עולם inside."),
    ("כדי לראות מה קורה כאשר השורה נשברת", "כדי לראות מה קורה כאשר השורה נשברת"),
    (
        " באמצע.English  וגם מילה2026 העמוד, ויש בה גם מספר",
        "העמוד, ויש בה גם מספר 2026 וגם מילה English באמצע.",
    ),
    ('"שלום" אמר האיש', '"שלום" אמר האיש'),
    ("12:30 בשעה", "בשעה 12:30"),
    ("", ""),
]


@pytest.mark.parametrize(("extracted", "read"), LINES)
def test_lines_that_chromium_printed(extracted: str, read: str) -> None:
    page = "כל העמוד הזה כתוב בעברית ורק מעט ממנו באנגלית"
    assert in_reading_order(f"{page}\n{extracted}").split("\n") == [page, read]


def test_letters_that_stood_in_reading_order_are_turned_back() -> None:
    """pypdf turned them round; words that begin with final letters show it."""
    line = "שלום לכם חברים"
    assert in_reading_order(line[::-1]) == line


def test_a_page_in_latin_letters_is_left_as_it_is() -> None:
    page = "The price is 100. שלום (עולם) the end, and more of it."
    assert in_reading_order(page) == page


@given(st.text(alphabet="אבגםן ab1()., \n", max_size=60))
def test_no_letter_is_lost(text: str) -> None:
    assert sorted(filter(str.isalnum, in_reading_order(text))) == sorted(filter(str.isalnum, text))
