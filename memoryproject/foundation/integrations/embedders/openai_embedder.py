"""The embedder for OpenAI and for every server with a compatible embeddings API."""

import base64
import logging
import math
import re
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memoryproject.foundation.errors.stored_errors import ErrorText
from memoryproject.foundation.integrations.embedders.base import (
    DEFAULT_CALIBRATION,
    Calibration,
    Embedder,
    EmbedderError,
    WrongDimensionsError,
    unit_vector,
)
from memoryproject.foundation.integrations.lenient import Fields
from memoryproject.foundation.integrations.llm.openai_api import OpenAIConnection, unreadable_answer
from memoryproject.foundation.integrations.llm.reading import failure_of, json_of
from memoryproject.foundation.integrations.llm.server_traits import (
    Traits,
    TraitsStore,
    UnsharedTraits,
    embedding_learned_from,
)
from memoryproject.foundation.integrations.retry import AttemptFailed, call_with_retries
from memoryproject.foundation.process.tracing import model_span

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
MAX_TOKENS_PER_TEXT = 8_000
MAX_BYTES_PER_REQUEST = 300_000
MAX_TEXTS_PER_REQUEST = 256
PATH = "/embeddings"


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

    batch: how many texts a call takes at most; max_tokens: how long a text may be. What the server
    refuses of them is learned, see server_traits.py. connection: what OpenAIConnection takes
    besides.
    """

    def __init__(
        self,
        api_key: str | None,
        base_url: str | None,
        model: str = "text-embedding-3-small",
        dimensions: int | None = None,
        *,
        prefixes: tuple[str, str] = ("", ""),
        sleep: Callable[[float], None] = time.sleep,
        traits: TraitsStore | None = None,
        batch: int = MAX_TEXTS_PER_REQUEST,
        max_tokens: int = MAX_TOKENS_PER_TEXT,
        **connection: Any,
    ) -> None:
        """Raises ValueError for invalid dimensions and for a URL that isn't http(s)."""
        known = KNOWN_DIMENSIONS.get(model)
        _check_dimensions(model, dimensions, known)
        shortened = dimensions is not None and known is not None and dimensions != known
        self._requested = dimensions if shortened else None
        self._dimensions = dimensions or known
        self._model = model
        self._connection = OpenAIConnection(api_key, base_url, **connection)
        self._traits = traits or UnsharedTraits()
        self._batch = batch
        self._max_bytes = max_tokens
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
        known = traits = Traits.of(self._traits.load())
        with model_span("embeddings", self._model):
            while True:
                try:
                    vectors = self._embed_in_form(texts, prefix, traits)
                except _OtherFormNamed as refusal:
                    traits = refusal.traits
                else:
                    break
        if traits != known:
            self._traits.save(traits.record())
        return vectors

    def _embed_in_form(
        self, texts: Sequence[str], prefix: str, traits: Traits
    ) -> list[list[float]]:
        longest = min(self._max_bytes, traits.text_bytes or self._max_bytes)
        pieces = [[prefix + piece for piece in _pieces(text, longest)] for text in texts]
        flat = [piece for group in pieces for piece in group]
        batch = min(self._batch, traits.batch or self._batch)
        groups = group_texts(flat, most_texts=batch, max_bytes=MAX_BYTES_PER_REQUEST)
        vectors = (each for group in groups for each in self._embed_group(group, traits))
        embedded = [_mean(group, vectors) for group in pieces]
        # Only a text without pieces has no vector, and then the server may not have been queried.
        return [vector or [0.0] * self.dimensions for vector in embedded]

    def coverage(self, text: str) -> float:
        """See Embedder.coverage: these models know every language."""
        return 1.0 if text.strip() else 0.0

    def close(self) -> None:
        """Free the sockets."""
        self._connection.close()

    def _embed_group(self, texts: list[str], traits: Traits) -> list[list[float]]:
        """Return the vectors of one call. Raises EmbedderError and _OtherFormNamed."""
        try:
            vectors, _ = call_with_retries(lambda: self._ask(texts, traits), sleep=self._sleep)
        except AttemptFailed as failure:
            other = None
            if failure.refused:
                has_dimensions = self._requested is not None
                other = embedding_learned_from(
                    failure.words, texts=texts, has_dimensions=has_dimensions, traits=traits
                )
            if other is not None:
                raise _OtherFormNamed(other) from None
            raise EmbedderError.of(failure) from None
        return vectors

    def _ask(self, texts: list[str], traits: Traits) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._model, "input": texts}
        if not traits.no_base64:
            body["encoding_format"] = "base64"
        if self._requested is not None and not traits.no_dimensions:
            body["dimensions"] = self._requested
        vectors = self._connection.post(PATH, body, lambda found: read_vectors(found, len(texts)))
        if self._requested is not None and traits.no_dimensions:
            # Vectors of such a model may be cut, which is what the server would have done.
            vectors = [vector[: self._requested] for vector in vectors]
        size = self._dimensions or len(vectors[0])
        wrong = next((len(vector) for vector in vectors if len(vector) != size), None)
        if wrong is not None:
            raise WrongDimensionsError(self._model, given=wrong, known=size)
        self._dimensions = size
        return [unit_vector(vector) for vector in vectors]


class _OtherFormNamed(Exception):
    """The server refused the texts, and named what it accepts. ``traits``: what to try."""

    def __init__(self, traits: Traits) -> None:
        super().__init__("other form")
        self.traits = traits


def _check_dimensions(model: str, dimensions: int | None, known: int | None) -> None:
    if dimensions is None:
        return
    if dimensions < 1:
        raise ValueError("The dimensions of an embedding must be a positive number")
    if known is None or dimensions == known:
        return
    if model not in MODELS_WITH_CHOICE or dimensions > known:
        raise ValueError(f"The embedding model {model} has {known} dimensions, not {dimensions}")


def _pieces(text: str, max_bytes: int) -> list[str]:
    """Return the pieces that the API accepts; none for a blank text, which it refuses."""
    # Lone surrogates can't be sent. The replacement loses nothing that could be searched.
    clean = text.encode("utf-8", errors="replace").decode("utf-8")
    return [piece for piece in split_text(clean, max_bytes) if piece.strip()]


def _mean(pieces: Sequence[str], vectors: Iterator[list[float]]) -> list[float]:
    """Take one vector for each piece; return their weighted mean in length 1, [] for no pieces."""
    if len(pieces) == 1:
        return next(vectors)
    weighted = [[len(piece) * value for value in next(vectors)] for piece in pieces]
    return unit_vector([math.fsum(column) for column in zip(*weighted, strict=True)])


def read_vectors(body: bytes, count: int) -> list[list[float]]:
    """Return one vector for each of ``count`` texts, in their order. Raises AttemptFailed.

    Some servers number none of them, or all by 0: those are in order.
    """
    answer = Fields.of(json_of(body))
    data = answer.get("data")
    if not isinstance(data, list):
        raise failure_of(answer, body)
    try:
        vectors = [_numbers(item["embedding"]) for item in data]
        places = [item.get("index") for item in data]
    except (AttributeError, LookupError, TypeError, ValueError):
        raise unreadable_answer() from None
    if len(vectors) != count:
        raise unreadable_answer()
    if len(set(map(str, places))) > 1 or count == 1 and places != [None]:
        by_place = dict(zip(map(str, places), vectors, strict=True))
        vectors = [by_place.get(str(place), []) for place in range(count)]
    if not all(vectors):
        raise unreadable_answer()
    return vectors


def _numbers(values: object) -> list[float]:
    """Return the values as floats: a list, one in a list, or 32-bit floats in base64.

    Raises ValueError if there are none, all are zero, or one isn't a number.
    """
    if isinstance(values, str):
        values = array("f", base64.b64decode(values, validate=True))
        if sys.byteorder == "big":
            values.byteswap()
    elif isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    if not isinstance(values, (list, array)):
        raise ValueError("not a vector")
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


class RetryingEmbedder:
    """Retry ``embedder`` after each of ``delays`` if a retry can help."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        sleep: Callable[[float], None],
        delays: Sequence[float] = DELAYS,
    ) -> None:
        self.embedder, self.sleep, self.delays = embedder, sleep, delays
        self.model_id, self.calibration = embedder.model_id, embedder.calibration
        self.dimensions = embedder.dimensions

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
