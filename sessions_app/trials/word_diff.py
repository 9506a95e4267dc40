"""Compare two texts word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

SAME, ADDED, REMOVED = "same", "added", "removed"
# Longer texts are compared by lines: the time grows with the square of the number of words.
MAX_WORDS = 1_500
# Texts that have less in common are only shown: marks on every word tell nothing.
MIN_ALIKE = 0.25
_WORD = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+$")


@dataclass(frozen=True)
class Segment:
    """A piece of the compared texts: in both, only in the new one, or only in the old one."""

    kind: str
    text: str


@dataclass(frozen=True)
class WordDiff:
    """The differences of a new text from an old one.

    ``unlike``: they have so little in common that the new text stands unmarked.
    """

    segments: Sequence[Segment]
    unlike: bool = False

    @property
    def is_same(self) -> bool:
        return not self.unlike and all(each.kind == SAME for each in self.segments)


def word_diff(old: str, new: str) -> WordDiff:
    """Return the new text in pieces, with what it adds to the old one and what it lacks."""
    before, after = _pieces(old, new)
    matcher = SequenceMatcher(None, _keys(before), _keys(after))
    if old and new and matcher.ratio() < MIN_ALIKE:
        return WordDiff([Segment(SAME, new)], unlike=True)
    found = []
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            found.append(Segment(SAME, "".join(after[new_start:new_end])))
            continue
        gone, come = "".join(before[start:end]), "".join(after[new_start:new_end])
        found += [Segment(REMOVED, gone)] if gone.strip() else []
        # The space before a word isn't marked.
        bare = come.lstrip()
        space = come.removesuffix(bare)
        found += [Segment(SAME, space)] if space and bare else []
        found += [Segment(ADDED, bare or come)] if come else []
    return WordDiff(found)


def _pieces(old: str, new: str) -> tuple[list[str], list[str]]:
    words = _WORD.findall(old), _WORD.findall(new)
    if max(map(len, words)) <= MAX_WORDS:
        return words
    return old.splitlines(keepends=True), new.splitlines(keepends=True)


def _keys(pieces: Sequence[str]) -> list[str]:
    return [piece.strip() for piece in pieces]
