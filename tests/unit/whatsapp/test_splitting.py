"""Long texts are cut where a reader would pause, within the limit, without loss."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryproject.foundation.integrations.whatsapp.outgoing_text import split_text, text_length

PIECES = st.lists(
    st.sampled_from(
        ["a", "word", "שלום", "שָׁלוֹם", " ", "  ", "\n", "\n\n", "\t", "\u00a0", ". ", "? ", "! "]
        + ['."', "3.5", "👍🏽", "👩‍👩‍👧", "🇮🇱", "e\u0301", "- item\n"]
    ),
    max_size=60,
).map("".join)


def without_space(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(text=st.one_of(PIECES, st.text(max_size=200)), limit=st.integers(2, 50))
@settings(max_examples=400)
def test_parts_fit_and_hold_everything_in_order(text: str, limit: int) -> None:
    parts = split_text(text, limit)

    assert all(0 < text_length(part) <= limit for part in parts)
    assert all(part.strip() for part in parts)
    assert without_space("".join(parts)) == without_space(text)
    # Only white space at the cuts is gone: every part stands in the text as it is.
    place = 0
    for part in parts:
        start = text.index(part, place)
        assert not text[place:start].strip()
        place = start + len(part)


@given(text=PIECES)
def test_a_text_that_fits_stays_whole(text: str) -> None:
    assert split_text(text, 10_000) == ([text] if text.strip() else [])


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("One. Two.\n\nThree. Four.", 16, ["One. Two.", "Three. Four."]),
        ("One is here. Two is there.", 20, ["One is here.", "Two is there."]),
        ('He said "no." Then he left.', 20, ['He said "no."', "Then he left."]),
        ("It costs 3.50 today only", 14, ["It costs 3.50", "today only"]),
        ("- first thing\n- second thing", 20, ["- first thing", "- second thing"]),
        ("words without any end", 15, ["words without", "any end"]),
        ("exactly ten", 7, ["exactly", "ten"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("שלום לכם. מה שלומכם?", 12, ["שלום לכם.", "מה שלומכם?"]),
        ("   \n  ", 3, []),
    ],
)
def test_where_it_is_cut(text: str, limit: int, parts: list[str]) -> None:
    assert split_text(text, limit) == parts


@pytest.mark.parametrize("cluster", ["👍🏽", "👩‍👩‍👧", "🇮🇱", "e\u0301", "שָׁ", "❤️", "1\ufe0f\u20e3"])
def test_what_is_read_as_one_character_is_not_torn(cluster: str) -> None:
    limit = text_length(cluster) + 1

    assert split_text(cluster * 5, limit) == [cluster] * 5


def test_length_counts_what_both_providers_might_count() -> None:
    assert text_length("aש") == 2
    assert text_length("👍") == 2


def test_a_limit_that_no_character_fits_into_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        split_text("text", 1)
