"""Recognise that a server refused a prompt because it is longer than the model reads. Pure.

There is no standard for this. OpenAI has a code, other servers only words:

- OpenAI, vLLM, llama-cpp-python: "This model's maximum context length is 4096 tokens. However,
  your messages resulted in 5000 tokens"; vLLM also "The decoder prompt (length 5000) is longer
  than the maximum model length of 4096"
- llama.cpp: type ``exceed_context_size_error``, with ``n_prompt_tokens`` and ``n_ctx``, and
  "request (5000 tokens) exceeds the available context size (4096 tokens)"
- LM Studio: "The number of tokens to keep from the initial prompt is greater than the context
  length (n_keep: 5000>= n_ctx: 4096)", "Context size has been exceeded", also with status 200
- Ollama: "the input length exceeds the context length", "prompt too long; exceeded max context
  length by 904 tokens". With its default settings it cuts the prompt and reports nothing.
- others: "prompt is too long", "Input is too long", "request too large" (413)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

CODES = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
        "prompt_too_long",
        "request_too_large",
    }
)
# Some servers report it as a fault of their own.
STATUSES = frozenset({200, 400, 413, 422, 500})
PAYLOAD_TOO_LARGE = 413
# A longer text isn't searched: it repeats the prompt.
MAX_WORDS_LENGTH = 2_000

_WORDS = re.compile(
    r"context (?:length|size|window)"
    r"|maximum (?:model|context|input|prompt|sequence) length"
    r"|(?:prompt|input|request|messages?)(?: \([^)]{0,60}\))? (?:is|are|was) too (?:long|large)"
    r"|(?:prompt|input) too long|too many (?:input |prompt )?tokens"
    r"|tokens to keep|trying to keep the first|exceeds? (?:the )?(?:token|input) limit",
    re.IGNORECASE,
)
_NUMBER = r"(\d[\d,]{0,12})"
_WINDOW = re.compile(
    rf"(?:maximum (?:model|context) length (?:is|of)|context (?:size|length|window)(?: is| of)?"
    rf"(?: only)?|n_ctx:?|limit (?:is|of)) ?\(?{_NUMBER}"
    rf"|> ?{_NUMBER} maximum",
    re.IGNORECASE,
)
# Of the prompt alone, where the server tells it from the room that it reserves for the answer.
_PROMPT_ALONE = re.compile(rf"{_NUMBER} (?:in the (?:messages|prompt)|input tokens)", re.IGNORECASE)
_PROMPT = re.compile(
    rf"(?:resulted in|requested|request \(|prompt \(length|n_keep:?|keep the first|too long:"
    rf"|contains at least) ?{_NUMBER}",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Overflow:
    """A server's own counts for a prompt that is too long; None where it doesn't report them.

    ``window``: the tokens that the model reads and writes together. ``prompt``: the tokens of the
    prompt.
    """

    window: int | None = None
    prompt: int | None = None


def read_overflow(status: int, body: object) -> Overflow | None:
    """Return what the answer of a server says; None if its reason is another one.

    ``body`` is the error object, or its text, where a server sends no object.
    """
    if status not in STATUSES:
        return None
    fields = body if isinstance(body, Mapping) else {}
    if isinstance(inner := fields.get("error"), (Mapping, str)):
        return read_overflow(status, inner)
    words = body if isinstance(body, str) else fields.get("message")
    words = words[:MAX_WORDS_LENGTH] if isinstance(words, str) else ""
    named = {fields.get("code"), fields.get("type")} & CODES
    if not (named or status == PAYLOAD_TOO_LARGE or _WORDS.search(words)):
        return None
    prompt = _count(fields.get("n_prompt_tokens"))
    return Overflow(
        window=_count(fields.get("n_ctx")) or _first(_WINDOW, words),
        prompt=prompt or _first(_PROMPT_ALONE, words) or _first(_PROMPT, words),
    )


def _first(pattern: re.Pattern[str], words: str) -> int | None:
    found = pattern.search(words)
    if found is None:
        return None
    digits = next(group for group in found.groups() if group)
    return _count(int(digits.replace(",", "")))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
