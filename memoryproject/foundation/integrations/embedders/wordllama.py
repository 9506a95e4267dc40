"""The default embedder: WordLlama with 256 dimensions.

It uses the files in its package, without a key, download or network.
"""

from __future__ import annotations

import functools
import importlib
import logging
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders import calibrations
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from memoryproject.foundation.integrations.embedders.coverage import WORD_START, known_share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

DIMENSIONS = 256
# Limits the memory for a very long text to some megabytes.
PIECES_AT_ONCE = 8192


@dataclass(frozen=True)
class _Model:
    tokenizer: Tokenizer
    matrix: NDArray[np.float32]
    empty_ids: frozenset[int]


_loading = threading.Lock()


class WordLlamaEmbedder:
    """Knows English and, less well, other languages in Latin letters.

    The model is loaded at first use, once a process. Instances share it and are safe for threads.
    """

    model_id = "wordllama-256"
    dimensions = DIMENSIONS
    calibration = calibrations.WORDLLAMA_256

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed.

        A text without any known piece (empty, only emoji) gets the zero vector; its coverage is 0.
        Raises EmbedderError when the package is damaged.
        """
        model = _model()
        return [_vector(model, text) for text in texts]

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        if not text.strip():
            return 0.0
        clean = _clean(text)
        encoding = _encode(_model().tokenizer, clean)
        return known_share(
            (piece, clean[start:end])
            for piece, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True)
        )


def _vector(model: _Model, text: str) -> list[float]:
    """Return the mean of the pieces' vectors, in length 1."""
    import numpy as np  # noqa: PLC0415 slow to import

    if not text.strip():
        return [0.0] * DIMENSIONS
    encoding = _encode(model.tokenizer, _clean(text))
    # Emoji and similar characters split into bytes, three or four a character. These would outweigh
    # the words and make texts with the same emoji look alike. A bare word start carries no
    # information either.
    ids = [piece for piece in encoding.ids if piece not in model.empty_ids]
    total = np.zeros(DIMENSIONS, dtype=np.float64)
    for start in range(0, len(ids), PIECES_AT_ONCE):
        rows = model.matrix[ids[start : start + PIECES_AT_ONCE]]
        total += rows.sum(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(total))
    unit: list[float] = (total / length if length else total).tolist()
    return unit


def _encode(tokenizer: Tokenizer, text: str) -> Encoding:
    # One by one: a batch pads every text to the longest, and starts threads that don't survive a
    # later fork of a worker.
    return tokenizer.encode(text, add_special_tokens=False)


def _clean(text: str) -> str:
    """Return the text in the form that the tokenizer expects.

    Letters and their accents are composed, and lone surrogates, which it refuses, are replaced.
    """
    composed = unicodedata.normalize("NFC", text)
    return composed.encode("utf-8", errors="replace").decode("utf-8")


def _model() -> _Model:
    with _loading:
        return _load()


@functools.lru_cache(maxsize=1)
def _load() -> _Model:
    try:
        package = _import_quietly("wordllama")
        folder = Path(str(package.__file__)).parent
        loaded = package.WordLlama.load(cache_dir=folder, dim=DIMENSIONS, disable_download=True)
    except Exception as error:  # the tokenizer's loader raises bare Exceptions
        raise EmbedderError(
            ErrorText("wordllama_missing", kind=type(error).__name__),
            permanent=True,
        ) from error
    vocabulary = loaded.tokenizer.get_vocab()
    empty = {WORD_START, *(f"<0x{byte:02X}>" for byte in range(256))}
    empty_ids = frozenset(vocabulary[piece] for piece in empty)
    return _Model(tokenizer=loaded.tokenizer, matrix=loaded.embedding, empty_ids=empty_ids)


def _import_quietly(name: str) -> ModuleType:
    """Import a package that configures the root logger (logging.basicConfig) as it loads.

    That call does nothing while the root logger has a handler.
    """
    keeper = logging.NullHandler()
    logging.getLogger().addHandler(keeper)
    try:
        return importlib.import_module(name)
    finally:
        logging.getLogger().removeHandler(keeper)
