"""The number of tokens that a model reads at once, as its server reported it.

Prompts are kept within it, so that the server doesn't refuse each of them again.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Protocol

from django.core.cache import cache
from django.db import DatabaseError

from memoryproject.foundation.tables import read_table

logger = logging.getLogger(__name__)

# Then a longer prompt is tried: the server may have been given a larger window.
KEPT_FOR = timedelta(days=1)
# As of MAX_CONTEXT_TOKENS: a lower limit would leave no room for a conversation.
MIN_LIMIT = 500
# Our count of tokens is an estimate.
SAFETY = 0.95
# Where the server doesn't say how it counts the prompt, its tokens may be smaller than ours.
UNKNOWN_TOKENIZER = 0.7


@dataclass(frozen=True)
class LearnedLimit:
    """A limit in our estimate of tokens, and the time of the refusal that it was learned from."""

    tokens: int
    learned_at: datetime


class ContextLimit(Protocol):
    """Remembers the limit of one model on one server."""

    def learned(self) -> LearnedLimit | None:
        """Return what is known; None where nothing was refused lately."""

    def learn(self, tokens: int) -> None:
        """Remember that longer prompts are refused; at least MIN_LIMIT. Raises nothing."""


class SharedContextLimit:
    """A limit that all processes share, and that survives a restart."""

    def __init__(self, *, base_url: str, model: str) -> None:
        digest = hashlib.sha256(f"{base_url}\n{model}".encode()).hexdigest()
        self._key = f"context-limit:{digest}"
        self._model = model

    def learned(self) -> LearnedLimit | None:
        """See ContextLimit.learned."""
        try:
            known = cache.get(self._key)
        except DatabaseError as error:
            logger.warning("The limit of %s can't be read: %s", self._model, error)
            return None
        return LearnedLimit(*known) if known is not None else None

    def learn(self, tokens: int) -> None:
        """See ContextLimit.learn."""
        tokens = max(tokens, MIN_LIMIT)
        known = self.learned()
        learned = LearnedLimit(tokens, datetime.now(timezone.utc))
        try:
            cache.set(self._key, astuple(learned), KEPT_FOR.total_seconds())
        except DatabaseError as error:
            logger.warning("The limit of %s can't be stored: %s", self._model, error)
            return
        if known is None or known.tokens != tokens:
            logger.warning(
                "The model %s refuses prompts of more than about %d tokens. Until %s they are kept "
                "within that. Set MAX_CONTEXT_TOKENS=%d to keep the limit, or give the server a "
                "larger context window.",
                self._model,
                tokens,
                (learned.learned_at + KEPT_FOR).strftime("%Y-%m-%d %H:%M UTC"),
                tokens,
            )


def room_of(window: int, reply: int) -> int:
    """Return the tokens that a prompt may have beside an answer: at least half of the window."""
    return max(window - reply, window // 2)


def next_limit(*, sent: int, overflow: "Overflow", reply: int = 0) -> int:
    """Return the limit for the next try, after a prompt of ``sent`` tokens was refused.

    ``sent`` is our estimate. Where the server says how many tokens fit, the limit is what they are
    in our estimate, less the room for ``reply`` tokens; else it is half of what was sent.
    """
    if overflow.window is None:
        return sent // 2
    room = room_of(overflow.window, reply)
    fits = room * SAFETY * sent / overflow.prompt if overflow.prompt else room * UNKNOWN_TOKENIZER
    # A number that can't be right is no help.
    return int(fits) if sent // 8 < fits < sent * SAFETY else sent // 2


# Recognise that a server refused a prompt because it is longer than the model reads. Pure.

_TABLE = read_table(__file__, "context_limit.yaml")
CODES = frozenset(_TABLE["codes"])
# Some servers report it as a fault of their own.
STATUSES = frozenset({200, 400, 413, 422, 500})
PAYLOAD_TOO_LARGE = 413
# A longer text isn't searched: it repeats the prompt.
MAX_WORDS_LENGTH = 2_000


def _patterns(name: str) -> list[re.Pattern[str]]:
    """Return the patterns of this name, with their parts in the place of the parts' letters."""
    parts: dict[str, str] = _TABLE["parts"]
    whole = [re.sub(r"\{([A-Z])\}", lambda found: parts[found[1]], each) for each in _TABLE[name]]
    return [re.compile(each, re.IGNORECASE) for each in whole]


_WORDS, _NUMBERS, _REPLY = map(_patterns, ("words", "numbers", "reply"))
# A limit of both together is none of the answer.
_OF_BOTH = re.compile(
    r"(?i)(?:\b(?:inputs?(?! validation)|prompt|messages|total|sum)\b[^.\n]*|[+] ?)$"
)


@dataclass(frozen=True)
class Overflow:
    """A server's own counts for a prompt that is too long; None where it doesn't report them.

    ``window``: the tokens that the model reads and writes together. ``prompt``: the tokens of the
    prompt. ``total``: those of the prompt and of the room for the answer.
    """

    window: int | None = None
    prompt: int | None = None
    total: int | None = None

    def beside(self, reply: int | None) -> "Overflow":
        """Return the counts of a request that had room for ``reply`` tokens: its prompt's, too."""
        rest = (self.total or 0) - (reply or 0)
        return replace(self, prompt=self.prompt or (rest if rest > 0 else None))


def read_overflow(status: int, body: object) -> Overflow | None:
    """Return what the answer of a server says; None if its reason is another one.

    ``body`` is the error object, or its text, where a server sends no object.
    """
    if status not in STATUSES:
        return None
    if isinstance(body, list) and body:
        # Gemini puts its errors into a list.
        return read_overflow(status, body[0])
    fields = body if isinstance(body, Mapping) else {}
    if isinstance(inner := fields.get("error"), (Mapping, str)):
        return read_overflow(status, inner)
    words = body if isinstance(body, str) else fields.get("message")
    words = words[:MAX_WORDS_LENGTH] if isinstance(words, str) else ""
    is_named = {fields.get("code"), fields.get("type")} & CODES or status == PAYLOAD_TOO_LARGE
    is_of_prompt = any(each.search(words) for each in _WORDS) and not read_reply_limit(words)
    if not (is_named or is_of_prompt):
        return None
    found: dict[str, int] = {}
    for match in filter(None, (each.search(words) for each in _NUMBERS)):
        found = {**_counts(match), **found}
    counted = Overflow(
        _count(fields.get("n_ctx")) or found.get("window"),
        _count(fields.get("n_prompt_tokens")) or found.get("prompt"),
        found.get("total"),
    )
    if {"reply", "total"} <= found.keys():
        # What functions have is a part of the prompt, too.
        return replace(counted, prompt=None).beside(found["reply"])
    return counted


def read_reply_limit(words: str, below: int | None = None) -> int | None:
    """Return the most tokens that an answer may have, where a refusal says it.

    ``below``: a number that isn't smaller is another one, such as what was asked for.
    """
    limits = []
    for found in (found for each in _REPLY for found in each.finditer(words)):
        counts = _counts(found)
        if not _OF_BOTH.search(words[: found.start()]):
            limits.append(counts.get("most") or counts["beyond"] - 1)
    return max((each for each in limits if below is None or each < below), default=None)


def _counts(found: re.Match[str]) -> dict[str, int]:
    given = found.groupdict()
    return {name: int(given[name].replace(",", "")) for name in given if given[name]}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
