"""Texts cut and grouped for an embeddings API."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.integrations.embedders.openai_embedder import group_texts, split_text

TEXT = st.text(st.characters(codec="utf-8"))


def size(text: str) -> int:
    return len(text.encode("utf-8"))


@given(TEXT, st.integers(min_value=4, max_value=50))
def test_pieces_fit_and_lose_nothing(text: str, most: int) -> None:
    pieces = split_text(text, most)
    assert "".join(pieces) == text
    assert all(size(piece) <= most for piece in pieces)


def test_a_text_that_fits_stays_whole() -> None:
    assert split_text("שלום", 8) == ["שלום"]
    assert split_text("שלום", 7) == ["שלו", "ם"]


@given(st.lists(TEXT), st.integers(1, 5), st.integers(1, 30))
def test_groups_keep_order_and_limits(texts: list[str], most_texts: int, max_bytes: int) -> None:
    groups = list(group_texts(texts, most_texts=most_texts, max_bytes=max_bytes))
    assert [text for group in groups for text in group] == texts
    for group in groups:
        assert 1 <= len(group) <= most_texts
        assert len(group) == 1 or sum(map(size, group)) <= max_bytes


def test_groups_are_as_full_as_they_can_be() -> None:
    groups = group_texts(["aa", "bb", "cc", "dddd"], most_texts=2, max_bytes=5)
    assert list(groups) == [["aa", "bb"], ["cc"], ["dddd"]]
