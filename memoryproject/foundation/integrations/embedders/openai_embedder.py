"""The embedder for OpenAI and for every server with a compatible embeddings API."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from openai import OpenAI
from openai.types import CreateEmbeddingResponse

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import (
    DEFAULT_CALIBRATION,
    Calibration,
    Embedder,
    EmbedderError,
    WrongDimensionsError,
    unit_vector,
)
from memoryproject.foundation.integrations.openai_api import OpenAIConnection, unreadable_answer
from memoryproject.foundation.integrations.retry import AttemptFailed, call_with_retries
from memoryproject.foundation.outside_services.guards import Guard

KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
MODELS_WITH_CHOICE = {"text-embedding-3-small", "text-embedding-3-large"}

# The cosines of ada-002 are hardly ever below 0.7, for any texts.
CALIBRATIONS = {"text-embedding-ada-002": Calibration(midpoint=0.80, slope=40.0)}

# A word before each query and each passage, as the models were trained; by a part of their name.
PREFIXES = {"e5": ("query:", "passage:"), "nomic-embed-text": ("search_query:", "search_document:")}

# The API accepts 8,192 tokens a text and 300,000 a request. A token is at least one byte, so byte
# limits hold in every language without a tokenizer.
MAX_BYTES_PER_TEXT = 8_000
MAX_BYTES_PER_REQUEST = 300_000
MAX_TEXTS_PER_REQUEST = 256


def prefixes_of(model: str) -> tuple[str, str]:
    """Return the words that a model expects before a query and before a passage; often empty."""
    for part, prefixes in PREFIXES.items():
        if re.search(rf"(?<![a-z0-9]){part}(?![a-z0-9])", model.lower()):
            return prefixes
    return "", ""


class OpenAIEmbedder:
    """Embeds with POST {base_url}/embeddings.

    prefixes: words before each query and each passage; they are a part of the model's id.

    dimensions: requests shorter vectors from text-embedding-3 models; for other models it is the
    expected size. If omitted: the known size, or the size in the server's first response.
    """

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        model: str = "text-embedding-3-small",
        dimensions: int | None = None,
        *,
        prefixes: tuple[str, str] = ("", ""),
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
        guard: Guard | None = None,
    ) -> None:
        """Raises ValueError for invalid dimensions and for a URL that isn't http(s)."""
        known = KNOWN_DIMENSIONS.get(model)
        _check_dimensions(model, dimensions, known)
        shortened = dimensions is not None and known is not None and dimensions != known
        self._requested = dimensions if shortened else None
        self._dimensions = dimensions or known
        self._model = model
        self._connection = OpenAIConnection(api_key, base_url, timeout=timeout, guard=guard)
        self._sleep = sleep
        self._query_prefix, self._passage_prefix = (f"{each} " if each else "" for each in prefixes)
        shown = [f":{dimensions}"] if shortened else []
        shown += [f":{'|'.join(prefixes)}"] if any(prefixes) else []
        self.model_id = f"openai:{model}{''.join(shown)}"
        self.calibration = CALIBRATIONS.get(model, DEFAULT_CALIBRATION)

    @property
    def dimensions(self) -> int:
        """See Embedder.dimensions. Queries the server if the model's size isn't known yet."""
        if self._dimensions is None:
            self.embed(["dimensions"])
        if self._dimensions is None:
            raise EmbedderError(ErrorText("dimensions_unknown"))
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed.

        A text above the model's limit is embedded in pieces. Its vector is their mean, weighted by
        length.
        """
        return self._embed_prefixed(texts, self._passage_prefix)

    def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """See QueryEmbedder.embed_queries."""
        return self._embed_prefixed(texts, self._query_prefix)

    def _embed_prefixed(self, texts: Sequence[str], prefix: str) -> list[list[float]]:
        pieces = [[prefix + piece for piece in _pieces(text)] for text in texts]
        flat = [piece for group in pieces for piece in group]
        vectors = self._embed_all(flat)
        embedded = [_mean(group, vectors) for group in pieces]
        # Only a text without pieces has no vector, and then the server may not have been queried.
        return [vector or [0.0] * self.dimensions for vector in embedded]

    def coverage(self, text: str) -> float:
        """See Embedder.coverage: these models know every language."""
        return 1.0 if text.strip() else 0.0

    def close(self) -> None:
        """Free the sockets."""
        self._connection.close()

    def _embed_all(self, texts: Sequence[str]) -> Iterator[list[float]]:
        groups = group_texts(
            texts, most_texts=MAX_TEXTS_PER_REQUEST, max_bytes=MAX_BYTES_PER_REQUEST
        )
        for group in groups:
            yield from self._embed_group(group)

    def _embed_group(self, texts: list[str]) -> list[list[float]]:
        try:
            vectors, _ = call_with_retries(lambda: self._ask(texts), sleep=self._sleep)
        except AttemptFailed as failure:
            raise EmbedderError.of(failure) from None
        return vectors

    def _ask(self, texts: list[str]) -> list[list[float]]:
        answer = self._connection.call(lambda client: self._request(client, texts))
        vectors = _read_vectors(answer, len(texts))
        size = self._dimensions or len(vectors[0])
        wrong = next((len(vector) for vector in vectors if len(vector) != size), None)
        if wrong is not None:
            raise WrongDimensionsError(self._model, given=wrong, known=size)
        self._dimensions = size
        return [unit_vector(vector) for vector in vectors]

    def _request(self, client: OpenAI, texts: list[str]) -> CreateEmbeddingResponse:
        if self._requested is None:
            return client.embeddings.create(model=self._model, input=texts)
        return client.embeddings.create(model=self._model, input=texts, dimensions=self._requested)


def _check_dimensions(model: str, dimensions: int | None, known: int | None) -> None:
    if dimensions is None:
        return
    if dimensions < 1:
        raise ValueError("The dimensions of an embedding must be a positive number")
    if known is None or dimensions == known:
        return
    if model not in MODELS_WITH_CHOICE or dimensions > known:
        raise ValueError(f"The embedding model {model} has {known} dimensions, not {dimensions}")


def _pieces(text: str) -> list[str]:
    """Return the pieces that the API accepts; none for a blank text, which it refuses."""
    # Lone surrogates can't be sent. The replacement loses nothing that could be searched.
    clean = text.encode("utf-8", errors="replace").decode("utf-8")
    return [piece for piece in split_text(clean, MAX_BYTES_PER_TEXT) if piece.strip()]


def _mean(pieces: Sequence[str], vectors: Iterator[list[float]]) -> list[float]:
    """Take one vector for each piece; return their weighted mean in length 1, [] for no pieces."""
    if len(pieces) == 1:
        return next(vectors)
    weighted = [[len(piece) * value for value in next(vectors)] for piece in pieces]
    return unit_vector([math.fsum(column) for column in zip(*weighted, strict=True)])


def _read_vectors(answer: CreateEmbeddingResponse, count: int) -> list[list[float]]:
    """Return one vector for each text, in order. The SDK doesn't check what it parses."""
    try:
        by_index = {int(item.index): _numbers(item.embedding) for item in answer.data}
        vectors = [by_index[place] for place in range(count)]
    except (AttributeError, LookupError, TypeError, ValueError):
        raise unreadable_answer() from None
    if len(answer.data) != count:
        raise unreadable_answer()
    return vectors


def _numbers(values: Sequence[float]) -> list[float]:
    """Return the values as floats.

    Raises ValueError if there are none, all are zero, or one isn't a number.
    """
    numbers = [float(value) for value in values]
    if not any(numbers) or not all(math.isfinite(value) for value in numbers):
        raise ValueError("not a vector")
    return numbers


# Split and group texts to fit the limits of an embeddings API. Pure functions.


def split_text(text: str, max_bytes: int) -> list[str]:
    """Return the text in pieces of at most ``max_bytes`` bytes of UTF-8 (at least 4), in order.

    No text is lost.
    """
    if len(text) * 4 <= max_bytes or len(text.encode("utf-8")) <= max_bytes:
        return [text]
    pieces = []
    start = size = 0
    for place, char in enumerate(text):
        width = len(char.encode("utf-8"))
        if size + width > max_bytes:
            pieces.append(text[start:place])
            start, size = place, 0
        size += width
    return [*pieces, text[start:]]


def group_texts(texts: Iterable[str], *, most_texts: int, max_bytes: int) -> Iterator[list[str]]:
    """Yield the texts in order, in groups of at most ``most_texts`` texts and ``max_bytes`` bytes.

    A single text that is larger than ``max_bytes`` is a group by itself.
    """
    group: list[str] = []
    size = 0
    for text in texts:
        width = len(text.encode("utf-8"))
        if group and (len(group) == most_texts or size + width > max_bytes):
            yield group
            group, size = [], 0
        group.append(text)
        size += width
    if group:
        yield group


# An embedder for background work: it tolerates longer failures than a waiting person would.

logger = logging.getLogger(__name__)

# In addition to the embedder's own retries. Most rate limits are for each minute.
DELAYS = (10.0, 30.0, 60.0, 120.0)


@dataclass(frozen=True)
class RetryingEmbedder:
    """Retry ``embedder`` after each of ``delays`` if a retry can help."""

    embedder: Embedder
    sleep: Callable[[float], None]
    delays: Sequence[float] = DELAYS

    @property
    def model_id(self) -> str:
        return self.embedder.model_id

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    @property
    def calibration(self) -> Calibration:
        return self.embedder.calibration

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """See Embedder.embed."""
        for delay in self.delays:
            try:
                return self.embedder.embed(texts)
            except EmbedderError as error:
                if error.permanent:
                    raise
                logger.warning("No vectors yet, again in %g seconds: %s", delay, error)
            self.sleep(delay)
        return self.embedder.embed(texts)

    def coverage(self, text: str) -> float:
        """See Embedder.coverage."""
        return self.embedder.coverage(text)
