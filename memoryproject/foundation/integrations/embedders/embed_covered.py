"""Vectors for those texts that an embedder knows: the one place where that is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memoryproject.foundation.integrations.embedders.base import Embedder

MIN_COVERAGE = 0.5


def embed_covered(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """One vector a text, in order; None where the embedder doesn't cover the text well enough
    for its vector to say anything. No vector is zero, which would be as near to one text as to
    any other. Raises EmbedderError."""
    known = [place for place, text in enumerate(texts) if embedder.coverage(text) >= MIN_COVERAGE]
    vectors: list[list[float] | None] = [None] * len(texts)
    if known:
        made = embedder.embed([texts[place] for place in known])
        for place, vector in zip(known, made, strict=True):
            length = math.hypot(*vector)
            if length and math.isfinite(length):
                vectors[place] = vector
    return vectors
