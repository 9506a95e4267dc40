"""Which texts get a vector."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from memoryproject.foundation.integrations.embedders.base import EmbedderError, embed_covered
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
