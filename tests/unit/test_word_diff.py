"""The differences between two texts, word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.trials.word_diff import ADDED, REMOVED, SAME, word_diff


def pieces(old: str, new: str) -> list[tuple[str, str]]:
    found = word_diff(old, new).segments
    return [(each.kind, each.text.strip()) for each in found if each.text.strip()]


def test_changed_words_are_marked() -> None:
    assert pieces("We open at nine on Friday.", "We open at ten on Friday.") == [
        (SAME, "We open at"),
        (REMOVED, "nine"),
        (ADDED, "ten"),
        (SAME, "on Friday."),
    ]


def test_equal_texts_have_no_marks() -> None:
    assert word_diff("שלום לכולם", "שלום לכולם").is_same
    assert word_diff("two  words", "two words").is_same, "white space alone is no difference"


def test_texts_with_little_in_common_are_not_marked() -> None:
    found = word_diff("We open at nine.", "Das weiss ich leider gar nicht, bitte rufen Sie an!")
    assert found.unlike
    assert [each.kind for each in found.segments] == [SAME]


def test_very_long_texts_are_compared_by_lines() -> None:
    lines = [f"line {number} says something of its own\n" for number in range(1_000)]
    changed = [*lines[:500], "another line\n", *lines[501:]]
    found = word_diff("".join(lines), "".join(changed))
    assert [each.text for each in found.segments if each.kind != SAME] == [
        lines[500],
        "another line\n",
    ]


@given(st.text(max_size=80), st.text(max_size=80))
def test_what_is_shown_is_the_whole_new_text(old: str, new: str) -> None:
    shown = "".join(each.text for each in word_diff(old, new).segments if each.kind != REMOVED)
    assert shown == new
