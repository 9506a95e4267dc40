"""The input of the rules."""

from __future__ import annotations

from dataclasses import dataclass

URL = r"(?:https?://|www\.)\S+"


@dataclass(frozen=True)
class Line:
    """A message: its role ("user", "assistant", …) and its text."""

    role: str
    content: str


def one_line(text: str) -> str:
    """Return the text with each run of white space replaced by one space."""
    return " ".join(text.split())
