"""Static embeddings of the optional package model2vec.

They are fast and need no key. A multilingual model covers many languages.
"""

import hashlib
import importlib
import json
import logging
import os
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import (
    Calibration,
    EmbedderError,
    unit_vector,
)

logger = logging.getLogger(__name__)

INSTALL = ErrorText("model2vec_install")
# The files that define a model. A folder may contain other files.
WEIGHTS = "model.safetensors"
MADE_OF = (WEIGHTS, "tokenizer.json", "config.json")
# The folders in which model2vec looks for them.
FOLDERS = (".", "0_StaticEmbedding")


class Model2VecEmbedder:
    """Embeds with a model2vec model from a folder or from the hub.

    ``source``: a folder with a model, or a model's name on the hub, such as
    minishlab/potion-multilingual-128M, which is downloaded at first use.

    The id is computed from the content of the files: a folder with another model in it is another
    model, but a moved folder is the same model. Safe for threads and forked workers.
    """

    def __init__(self, source: str) -> None:
        """Raises EmbedderError where the package or the model is missing."""
        self._source = source
        self._package = _package()
        self._folder = _folder(source)
        self.model_id = f"model2vec:{_digest(self._folder)[:24]}"
        self.dimensions = _dimensions(self._folder)
        # For the potion models. Staff can correct each model's row in the admin.
        self.calibration = Calibration(midpoint=0.35, slope=10.0)
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed. A text without any known word gets the zero vector."""
        return [self._vector(text) for text in texts]

    def coverage(self, text: str) -> float:
        """See Embedder.coverage.

        It is the share of the text's words that the model knows as words or as parts of words, not
        letter by letter. Digits count if the text has no word.
        """
        clean = _clean(text)
        encoding = self._model.tokenizer.encode(clean, add_special_tokens=False)
        words: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for piece, word, (start, end) in zip(
            encoding.ids, encoding.word_ids, encoding.offsets, strict=True
        ):
            words[-1 if word is None else word].append((piece, clean[start:end]))
        known = [self._knows(pieces) for pieces in words.values() if _letters(pieces)]
        if known:
            return sum(known) / len(known)
        return 1.0 if any(char.isdecimal() for char in clean) else 0.0

    def _knows(self, pieces: Sequence[tuple[int, str]]) -> bool:
        """Return whether a word is one piece or splits into pieces of two or more letters."""
        if any(piece == self._model.unk_token_id for piece, _ in pieces):
            return False
        return len(pieces) == 1 or _letters(pieces) >= 2 * len(pieces)

    def _vector(self, text: str) -> list[float]:
        model = self._model
        # Not model.encode: it changes the tokenizer that threads share, and starts threads that
        # don't survive a fork.
        encoding = model.tokenizer.encode(_clean(text), add_special_tokens=False)
        ids = [piece for piece in encoding.ids if piece != model.unk_token_id]
        if not ids:
            return [0.0] * self.dimensions
        rows = ids if model.token_mapping is None else model.token_mapping[ids]
        vectors = model.embedding[rows].astype(np.float64)
        if model.weights is not None:
            vectors = vectors * model.weights[ids][:, None]
        mean: list[float] = vectors.mean(axis=0).tolist()
        return unit_vector(mean)

    @property
    def _model(self) -> Any:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> Any:
        try:
            # None: no text is cut off.
            return self._package.StaticModel.from_pretrained(self._folder, max_length=None)
        except Exception as error:  # the tokenizer's loader raises bare Exceptions
            raise _unusable(self._source, error) from error


def _package() -> Any:
    try:
        return importlib.import_module("model2vec")
    except ImportError as error:
        text = ErrorText("model2vec_missing", install=INSTALL)
        raise EmbedderError(text, permanent=True) from error


def _folder(source: str) -> Path:
    """Return the folder of the model's files. Raises EmbedderError."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        if source.count("/") != 1 or source.startswith((".", "/", "~")):
            raise EmbedderError(ErrorText("model2vec_no_folder", source=source), permanent=True)
        folder = _downloaded(source)
    for inner in FOLDERS:
        if (folder / inner / WEIGHTS).is_file():
            return folder
    text = ErrorText("model2vec_no_model", source=source, file=WEIGHTS)
    raise EmbedderError(text, permanent=True)


def _downloaded(name: str) -> Path:
    """Return the hub's model on this machine; use the network only if it isn't here yet."""
    hub = importlib.import_module("huggingface_hub")
    wanted = [f"{inner}/{file}".removeprefix("./") for inner in FOLDERS for file in MADE_OF]
    wanted += ["config_sentence_transformers.json"]
    try:
        try:
            return Path(hub.snapshot_download(name, allow_patterns=wanted, local_files_only=True))
        except OSError:
            logger.info("The embedding model %s is being downloaded.", name)
            return Path(hub.snapshot_download(name, allow_patterns=wanted))
    except Exception as error:  # any exception of the network or the hub
        raise EmbedderError(
            ErrorText("model2vec_no_download", name=name, kind=type(error).__name__)
        ) from error


def _files(folder: Path) -> list[Path]:
    found = [folder / inner / name for inner in FOLDERS for name in MADE_OF]
    return [path for path in found if path.is_file()]


def _digest(folder: Path) -> str:
    """Return the SHA-256 of the files that define the model, as hex."""
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.name} {os.path.getsize(path)}\n".encode())
        with path.open("rb") as file:
            while block := file.read(1024**2):
                digest.update(block)
    return digest.hexdigest()


def _dimensions(folder: Path) -> int:
    """Read it from the weights' header: 8 bytes of length, then JSON. Raises EmbedderError."""
    path = next(path for path in _files(folder) if path.name == WEIGHTS)
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        vectors = header.get("embeddings") or header["embedding.weight"]
        return int(vectors["shape"][1])
    except (OSError, ValueError, LookupError, TypeError, MemoryError, OverflowError) as error:
        raise _unusable(str(folder), error) from error


def _unusable(source: str, error: Exception) -> EmbedderError:
    kind = type(error).__name__
    text = ErrorText("model2vec_unreadable", source=source, kind=kind)
    return EmbedderError(text, permanent=True)


def _letters(pieces: Sequence[tuple[int, str]]) -> int:
    return sum(unicodedata.category(char)[0] in "LM" for _, part in pieces for char in part)


def _clean(text: str) -> str:
    """Return the text without lone surrogates, which the tokenizer refuses."""
    return text.encode("utf-8", errors="replace").decode("utf-8")
