"""Texts are cut where a word ends, and never inside what is read as one character."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryproject.foundation.text.characters import cut_at_word, is_mark

TEXTS = st.one_of(
    st.lists(
        st.sampled_from(["ab", " ", "e\u0301", "👩‍👩‍👧", "👍🏽", "🇮🇱", "שָׁ", "1\ufe0f\u20e3"])
    ).map("".join),
    st.text(),
)


@pytest.mark.parametrize(
    ("text", "longest", "mark", "shown"),
    [
        ("one two", 7, "…", "one two"),
        ("one two three", 8, "…", "one two…"),
        ("one two three", 7, "…", "one…"),
        ("one two three", 10, "...", "one two..."),
        ("one two three", 9, "...", "one..."),
        ("abcdefgh", 5, "...", "ab..."),
        ("e\u0301e\u0301e\u0301", 4, "…", "e\u0301…"),
    ],
)
def test_where_it_is_cut(text: str, longest: int, mark: str, shown: str) -> None:
    assert cut_at_word(text, longest, mark=mark) == shown


@given(TEXTS, st.integers(min_value=10, max_value=40), st.sampled_from(["…", "..."]))
@settings(deadline=None)
def test_what_is_shown_fits_and_begins_the_text(text: str, longest: int, mark: str) -> None:
    shown = cut_at_word(text, longest, mark=mark)
    assert len(shown) <= longest
    if shown != text:
        head = shown.removesuffix(mark)
        assert text.startswith(head)
        assert len(text) > longest


@given(TEXTS, st.integers(min_value=10, max_value=40))
@settings(deadline=None)
def test_no_character_is_torn(text: str, longest: int) -> None:
    shown = cut_at_word(text, longest)
    rest = text[len(shown.removesuffix("…")) :]
    # A text of nothing but marks has no place to cut.
    if shown != text and any(not is_mark(each) for each in text[: longest - 1]):
        assert not is_mark(rest[0])
        assert not shown.endswith("\u200d…")
