"""The interface for posting webhooks. It imports no HTTP client: those are slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Posted:
    """The receiver's response.

    ``retry_after``: the seconds that it asked to wait, None if it asked for no wait.
    """

    status: int
    retry_after: float | None = None


class PostError(Exception):
    """No response came. The text states the reason, never the URL, which may hold a token."""


class Poster(Protocol):
    """Posts a body to an address."""

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        """Post once and follow no redirect. Raises PostError."""
        ...
