"""A figure of the dashboard, and what stands under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """A text under a figure, with a link to the list that it refers to."""

    text: str
    address: str = ""


@dataclass(frozen=True)
class Tile:
    """One figure. ``tone``: good, warn, bad, or empty.

    ``is_restless``: it changes by itself at any moment, whatever people and staff do.
    """

    key: str
    title: str
    value: str
    address: str = ""
    notes: Sequence[Note] = ()
    tone: str = ""
    is_restless: bool = False
