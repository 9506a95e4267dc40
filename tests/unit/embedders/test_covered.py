"""Which texts get a vector."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.coverage import embed_covered
from memoryproject.foundation.integrations.embedders.openai_embedder import group_texts, split_text
from memoryproject.foundation.integrations.embedders.wordllama import WordLlamaEmbedder
from tests.doubles.hashing_embedder import HashingEmbedder


def test_vectors_stand_in_the_order_of_their_texts() -> None:
    texts = ["", "an invoice", "חשבונית", "😀", "a price"]

    vectors = embed_covered(WordLlamaEmbedder(), texts)

    first, second = WordLlamaEmbedder().embed(["an invoice", "a price"])
    assert vectors == [None, first, None, None, second]


def test_a_model_is_not_asked_for_nothing() -> None:
    embedder = HashingEmbedder()

    assert embed_covered(embedder, ["", "?!"]) == [None, None]
    assert embedder.calls == []


@pytest.mark.parametrize("length", [0.0, float("nan"), float("inf")])
def test_a_vector_without_direction_is_none(length: float) -> None:
    class Broken(HashingEmbedder):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[length] * 4 for _ in texts]

    assert embed_covered(Broken(), ["word"]) == [None]


def test_a_failing_model_is_told() -> None:
    with pytest.raises(EmbedderError):
        embed_covered(HashingEmbedder(failure=EmbedderError("down")), ["word"])


# Texts cut and grouped for an embeddings API.


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
