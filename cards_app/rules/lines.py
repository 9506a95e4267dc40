"""What the rules read."""

from __future__ import annotations

from dataclasses import dataclass

URL = r"(?:https?://|www\.)\S+"


@dataclass(frozen=True)
class Line:
    """One message: who said it ("user", "assistant", …), and what."""

    role: str
    content: str


def one_line(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())
