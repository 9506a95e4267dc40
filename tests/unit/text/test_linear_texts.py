"""Functions that read people's texts whole look at each character a bounded number of times."""

from __future__ import annotations

import re
from datetime import date

from hypothesis import given, strategies as st

from memoryproject.foundation.integrations.whatsapp.markdown import to_whatsapp
from memoryproject.foundation.retrieval.subqueries import MAX_CHARACTERS, periods_asked
from memoryproject.foundation.text.characters import whole_places
from sessions_app.extraction.fact_store import quoted_in
from tests.tables import table

TODAY = date(2026, 11, 27)


@given(st.text("ab .([é_", max_size=40), st.text("ab .([é_", min_size=1, max_size=4))
def test_a_text_is_found_where_it_stands_by_itself(content: str, text: str) -> None:
    as_written = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    places = whole_places(content, text)
    assert places is None or places == [each.start() for each in as_written.finditer(content)]


def test_a_short_word_is_searched_to_the_end() -> None:
    assert whole_places("ab " * 5_000 + "b", "b") == [15_000]
    assert whole_places("b" * 5_000, "b") == []


def test_a_quotation_of_a_text_that_repeats_itself_is_nobodys() -> None:
    assert quoted_in("a" * 1_000, ["a" * 3_000, "x"]) is None
    found = quoted_in("." * 1_000 + "x", ["a", "." * 3_000 + "x"])
    assert found is not None
    assert (found[0], found[1].end) == (1, 3_001)


def test_of_a_long_question_the_days_at_its_end_count_once() -> None:
    assert len(periods_asked("May " * 15_000, today=TODAY)) == 1
    assert len(periods_asked("2 May " * 15_000 + "x" * MAX_CHARACTERS, today=TODAY)) == 0
    (last,) = periods_asked("What was paid last   March?", today=TODAY)
    assert last.first == date(2026, 3, 1)


@table(
    ("line", "shown"),
    [
        ("# Prices", "*Prices*"),
        ("## Prices ##  ", "*Prices*"),
        ("# C#", "*C#*"),
        ("# #", ""),
        ("# a # b", "*a # b*"),
        ("#tag", "#tag"),
        ("# " + " " * 20_000, ""),
        ("# a" + " #" * 20_000 + " \x0b", "*a" + " #" * 19_999 + "*"),
    ],
)
def test_a_heading_is_bold_without_the_marks_that_close_it(line: str, shown: str) -> None:
    assert to_whatsapp(line) == shown
