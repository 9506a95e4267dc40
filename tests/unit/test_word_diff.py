"""How a trial is compared with the answer. Its pieces: tests/unit/memories/test_diff.py."""

from __future__ import annotations

from hypothesis import given, strategies as st

from memories_app.facts.text_diff import GONE, SAME
from sessions_app.trials.presentation import compared


def test_equal_texts_have_no_marks() -> None:
    assert compared("שלום לכולם", "שלום לכולם").is_same
    assert compared("two  words", "two words").is_same, "white space alone is no difference"


def test_texts_with_little_in_common_are_not_marked() -> None:
    found = compared("We open at nine.", "Das weiss ich leider gar nicht, bitte rufen Sie an!")
    assert found.unlike
    assert [each.kind for each in found.pieces] == [SAME]


@given(st.text(max_size=80), st.text(max_size=80))
def test_what_is_shown_is_the_whole_new_text(old: str, new: str) -> None:
    shown = "".join(each.text for each in compared(old, new).pieces if each.kind != GONE)
    assert shown == new
