"""An embedder without a model: texts that share words get similar vectors.

It is deterministic on every platform.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence

from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    EmbedderError,
    unit_vector,
)

WORD = re.compile(r"\w+")


class HashingEmbedder:
    """Embeds bags of words.

    failure: every embed() raises it while it is set.
    calls: the texts of every call, oldest first, including failed calls.
    """

    calibration = Calibration(midpoint=0.30, slope=12.0)

    def __init__(self, dimensions: int = 256, *, failure: EmbedderError | None = None) -> None:
        self.dimensions = dimensions
        self.model_id = f"hashing-{dimensions}"
        self.failure = failure
        self.calls: list[list[str]] = []
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed."""
        with self._lock:
            self.calls.append(list(texts))
        if self.failure is not None:
            raise self.failure
        return [hashed_words(text, self.dimensions) for text in texts]

    def coverage(self, text: str) -> float:
        """See Embedder.coverage. All words in any language count equally here."""
        return 1.0 if WORD.search(text) else 0.0


def hashed_words(text: str, dimensions: int) -> list[float]:
    """Return a unit vector with a component for each word, regardless of its case.

    A text without words gets the zero vector.
    """
    vector = [0.0] * dimensions
    for word in WORD.findall(text.casefold()):
        digest = hashlib.blake2b(word.encode("utf-8", errors="replace"), digest_size=8).digest()
        number = int.from_bytes(digest, "big")
        vector[(number >> 1) % dimensions] += 1.0 if number & 1 else -1.0
    return unit_vector(vector)
