"""What changed from one text to another, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

SAME, GONE, NEW = "same", "gone", "new"

# A word with the spaces after it, so that spaces alone never count as what two texts share.
_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
# Comparing takes the product of both lengths at worst: longer texts are shown as replaced.
MAX_COMPARED = 4_000_000


@dataclass(frozen=True)
class Piece:
    """Some words; ``kind`` is same, gone (only the older text has them) or new."""

    kind: str
    text: str


def word_diff(older: str, newer: str) -> list[Piece]:
    """The pieces of both texts in reading order: without the new ones they are ``older``,
    without those that are gone ``newer``."""
    before, after = _WORD.findall(older), _WORD.findall(newer)
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    pieces = [Piece(SAME, "".join(before[:start]))]
    pieces += _compared(before[start : len(before) - end], after[start : len(after) - end])
    pieces.append(Piece(SAME, "".join(before[len(before) - end :])))
    return [piece for piece in pieces if piece.text]


def _shared(before: Sequence[str], after: Sequence[str]) -> int:
    """How many words both begin with."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    if len(before) * len(after) > MAX_COMPARED:
        yield from (Piece(GONE, "".join(before)), Piece(NEW, "".join(after)))
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, new_first, new_last in matcher.get_opcodes():
        if kind == "equal":
            yield Piece(SAME, "".join(before[first:last]))
            continue
        yield Piece(GONE, "".join(before[first:last]))
        yield Piece(NEW, "".join(after[new_first:new_last]))
