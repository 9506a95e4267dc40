"""The fence in a system text: find it, and take the text apart. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(r"<memories-([0-9a-f]{6,64})>\n?")
_CLOSING = re.compile(r"</memories-([0-9a-f]{6,64})>")


@dataclass(frozen=True)
class Fenced:
    """A text with a fence: what stands before it, the data inside, and what stands after it."""

    before: str
    data: str
    after: str


def fence_split(text: str) -> Fenced | None:
    """Return the parts of a text that has a fence, or None."""
    found = _fence(text)
    if found is None:
        return None
    opening, closing = found
    return Fenced(
        before=text[: opening.start()].rstrip(),
        data=text[opening.end() : closing.start()].removesuffix("\n"),
        after=text[closing.end() :].strip(),
    )


def _fence(text: str) -> tuple[re.Match[str], re.Match[str]] | None:
    """Return the first mark that opens a fence, and the one that closes it.

    A single expression for both would take quadratic time on a text full of opening marks.
    """
    closings: dict[str, list[re.Match[str]]] = {}
    for closing in _CLOSING.finditer(text):
        closings.setdefault(closing[1], []).append(closing)
    for opening in _OPENING.finditer(text):
        same = closings.get(opening[1])
        if same and same[-1].start() >= opening.end():
            return opening, next(each for each in same if each.start() >= opening.end())
    return None
