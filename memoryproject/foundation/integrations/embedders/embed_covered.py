"""Embed only the texts that an embedder knows: the only place that decides this."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memoryproject.foundation.integrations.embedders.base import Embedder

MIN_COVERAGE = 0.5


def embed_covered(embedder: Embedder, texts: Sequence[str]) -> list[list[float] | None]:
    """Return one vector for each text, in order; None if the embedder doesn't cover it.

    Without enough coverage a vector carries no information. No vector is zero, because a zero
    vector would be as near to one text as to any other. Raises EmbedderError.
    """
    known = [place for place, text in enumerate(texts) if embedder.coverage(text) >= MIN_COVERAGE]
    vectors: list[list[float] | None] = [None] * len(texts)
    if known:
        made = embedder.embed([texts[place] for place in known])
        for place, vector in zip(known, made, strict=True):
            length = math.hypot(*vector)
            if length and math.isfinite(length):
                vectors[place] = vector
    return vectors
