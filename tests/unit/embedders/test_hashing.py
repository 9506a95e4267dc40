"""The embedder without a model."""

from __future__ import annotations

import math

import pytest

from memoryproject.foundation.integrations.embedders.base import EmbedderError
from tests.doubles.hashing_embedder import HashingEmbedder


def cosine(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_texts_that_share_words_are_near_in_any_language() -> None:
    invoice, question, other = HashingEmbedder().embed(
        ["חשבונית של TestCorp", "איפה חשבונית testcorp", "opening hours on Sunday"]
    )
    assert cosine(invoice, question) > 0.6
    assert abs(cosine(invoice, other)) < 0.2


def test_vectors_have_length_one_and_the_same_numbers_everywhere() -> None:
    embedder = HashingEmbedder(dimensions=8)
    vector = embedder.embed(["one two three"])[0]
    assert len(vector) == embedder.dimensions == 8
    assert math.hypot(*vector) == pytest.approx(1.0)
    assert HashingEmbedder(4).embed(["hello"])[0] == [0, 0, 1, 0]


def test_a_text_without_words_is_the_zero_vector_and_not_covered() -> None:
    embedder = HashingEmbedder(dimensions=4)
    assert embedder.embed(["", "👍 !"]) == [[0.0] * 4, [0.0] * 4]
    assert (embedder.coverage("👍 !"), embedder.coverage("שלום")) == (0.0, 1.0)


def test_it_fails_while_it_is_told_to_and_keeps_every_call() -> None:
    embedder = HashingEmbedder(failure=EmbedderError("down"))
    with pytest.raises(EmbedderError, match="down"):
        embedder.embed(["a"])
    embedder.failure = None
    assert len(embedder.embed(["b", "c"])) == 2
    assert embedder.calls == [["a"], ["b", "c"]]
