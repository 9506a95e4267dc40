"""The interface of a measured product, and the embedder that all of them use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

DIMENSIONS = 256


class Store(Protocol):
    """One product. A scope is what one person's questions are asked in."""

    def fill(self, scope: str, texts: Sequence[str]) -> None:
        """Store the texts; a text is known by its place in them."""

    def fill_conversation(self, scope: str, conversation: Any) -> None:
        """Store a conversation of ``conversations.py``, by the places of its turns."""

    def ready(self) -> None:
        """Do what the product does before questions come: make an index, collect statistics."""

    def ask(self, scope: str, question: str, top_k: int) -> list[int]:
        """Return the places of the best texts, best first."""

    def close(self) -> None:
        """Stop what was started."""


class TextEmbedder:
    """WordLlama, from the package's own files."""

    def __init__(self) -> None:
        import wordllama  # noqa: PLC0415 slow

        folder = str(Path(wordllama.__file__).parent)
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return unit vectors of ``DIMENSIONS`` numbers."""
        vectors: list[list[float]] = self._model.embed(list(texts), norm=True).tolist()
        return vectors
