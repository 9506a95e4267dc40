"""The default embedder: WordLlama with 256 dimensions.

It uses the files in its package, without a key, download or network.
"""

from __future__ import annotations

import functools
import json
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import (
    WORD_START,
    Calibration,
    EmbedderError,
    known_share,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

DIMENSIONS = 256
_PACKAGE = "wordllama"
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TENSOR = "embedding.weight"
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
# Limits the memory for a very long text to some megabytes.
PIECES_AT_ONCE = 8192
# The beginning of a long text says whether its language is known: each piece takes time.
MAX_COVERED = 8192


@dataclass(frozen=True)
class _Model:
    tokenizer: Tokenizer
    matrix: NDArray[np.float16]
    empty_ids: frozenset[int]


_loading = threading.Lock()


class WordLlamaEmbedder:
    """Knows English and, less well, other languages in Latin letters.

    The model is loaded at first use, once a process. Instances share it and are safe for threads.
    """

    model_id = "wordllama-256"
    dimensions = DIMENSIONS
    calibration = Calibration(midpoint=0.31, slope=10.0)

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
        if text.isascii():
            # The same without the tokenizer: each ASCII letter is in a piece that counts as known.
            return 1.0 if any(map(str.isalnum, text)) else 0.0
        clean = _clean(text[:MAX_COVERED])
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
        from tokenizers import Tokenizer  # noqa: PLC0415 slow to import

        folder = _package_folder()
        matrix = _matrix(folder / _WEIGHTS)
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # the tokenizer's loader raises bare Exceptions
        raise EmbedderError(
            ErrorText("wordllama_missing", kind=type(error).__name__), permanent=True
        ) from error
    empty = {WORD_START, *(f"<0x{byte:02X}>" for byte in range(256))}
    # Not get_vocab: it makes a dictionary of all pieces.
    ids = [tokenizer.token_to_id(piece) for piece in empty]
    empty_ids = frozenset(piece for piece in ids if piece is not None)
    return _Model(tokenizer=tokenizer, matrix=matrix, empty_ids=empty_ids)


def _package_folder() -> Path:
    # The package is located, not imported: its import loads an HTTP client and configures the root
    # logger, and its loader makes a copy of the matrix in each process. Only its files are needed.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(_PACKAGE)
    return Path(spec.origin).parent


def _matrix(path: Path) -> NDArray[np.float16]:
    """Return the vectors of all pieces, mapped from the file, so that all processes share them.

    The file is in the format safetensors: 8 bytes with the length of a header in JSON, the header,
    and the numbers.
    """
    import numpy as np  # noqa: PLC0415 slow to import

    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        tensor = json.loads(file.read(length))[_TENSOR]
    rows, columns = tensor["shape"]
    if (tensor["dtype"], columns) != ("F16", DIMENSIONS):
        raise ValueError(f"{path} has another form.")
    offset = 8 + length + tensor["data_offsets"][0]
    return np.memmap(path, dtype="<f2", mode="r", offset=offset, shape=(rows, columns))
