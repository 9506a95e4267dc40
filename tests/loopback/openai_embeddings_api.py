"""POST /v1/embeddings as OpenAI documents it: its limits, the answer's form, and vectors
that are near where texts share words. Pure functions."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

from tests.doubles.hashing_embedder import hashed_words
from tests.loopback.openai_behaviours import Json, error_object
from tests.loopback.openai_chat_api import count_tokens

NATIVE_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
OTHER_DIMENSIONS = 384
MAX_INPUTS = 2048
MAX_TOKENS_PER_INPUT = 8192
MAX_TOKENS = 300_000


def find_fault(body: Json) -> Json | None:
    """The error body that a wrong request gets; None for a right one."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        return _fault("you must provide a model parameter")
    texts = inputs(body)
    if not texts or len(texts) > MAX_INPUTS or not all(texts):
        return _fault("'$.input' is invalid. Please check the API reference.")
    counts = [_tokens(text) for text in texts]
    if max(counts) > MAX_TOKENS_PER_INPUT:
        return _fault(f"This model's maximum context length is {MAX_TOKENS_PER_INPUT} tokens.")
    if sum(counts) > MAX_TOKENS:
        return _fault(f"Requested more than the maximum of {MAX_TOKENS} tokens.")
    if body.get("encoding_format", "float") not in ("float", "base64"):
        return _fault("Invalid value for 'encoding_format'.")
    return _dimensions_fault(model, body.get("dimensions"))


def inputs(body: Json) -> list[str | list[int]]:
    """The texts, or lists of tokens, to embed; empty when the input has another form."""
    given = body.get("input")
    if isinstance(given, str) or _is_tokens(given):
        given = [given]
    if not isinstance(given, list):
        return []
    return given if all(isinstance(one, str) or _is_tokens(one) for one in given) else []


def embeddings(body: Json) -> Json:
    """The answer's JSON."""
    texts = inputs(body)
    size = body.get("dimensions") or NATIVE_DIMENSIONS.get(body["model"], OTHER_DIMENSIONS)
    used = sum(_tokens(text) for text in texts)
    vectors = [hashed_words(_words(text), size) for text in texts]
    as_text = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if as_text else vector}
        for index, vector in enumerate(vectors)
    ]
    return {
        "object": "list",
        "data": data,
        "model": f"{body['model']}-loopback",
        "usage": {"prompt_tokens": used, "total_tokens": used},
    }


def _dimensions_fault(model: str, dimensions: object) -> Json | None:
    if dimensions is None:
        return None
    if not model.startswith("text-embedding-3"):
        return _fault("This model does not support specifying dimensions.")
    most = NATIVE_DIMENSIONS.get(model, OTHER_DIMENSIONS)
    if not isinstance(dimensions, int) or not 1 <= dimensions <= most:
        return _fault("Invalid value for 'dimensions'.")
    return None


def _is_tokens(given: object) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(one, int) for one in given)


def _words(text: str | list[int]) -> str:
    return text if isinstance(text, str) else " ".join(map(str, text))


def _tokens(text: str | list[int]) -> int:
    return count_tokens(text) if isinstance(text, str) else len(text)


def _base64(vector: Sequence[float]) -> str:
    """The vector as OpenAI sends it: little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _fault(message: str) -> Json:
    return error_object(message, kind="invalid_request_error", param="input")
