"""What the sending of webhooks needs of whoever posts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Posted:
    """The receiver's answer. ``retry_after``: seconds that it asked to wait, None where it
    said nothing."""

    status: int
    retry_after: float | None = None


class PostError(Exception):
    """No answer came. The text says why and never holds the URL, which may hold a token."""


class Poster(Protocol):
    """Posts a body to an address."""

    def post(self, url: str, *, headers: Mapping[str, str], body: bytes) -> Posted:
        """Post once, follow no redirect. Raises PostError."""
        ...
