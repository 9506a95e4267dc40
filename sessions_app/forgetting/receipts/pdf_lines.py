"""Break text into lines of a width, and put each line's characters in visual order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from bidi import get_display
from bidi.mirror import MIRRORED

_HEBREW = re.compile("[\u0590-\u05ff\ufb1d-\ufb4f]")
# Ids, dates, times and versions: each reads from left to right as a whole, although its leading
# digits alone would follow the Hebrew around them. Written-out code points do, too.
_POINTS = "\\[U\\+[0-9A-F]{4,6}\\]"
_NUMBERED = r"(?<![A-Za-z0-9+])[0-9]+[A-Za-z:./_@+-][A-Za-z0-9:./_@+-]*(?<=[A-Za-z0-9])"
_WHOLE = re.compile(f"(?:{_POINTS})+|{_NUMBERED}")
_ISOLATED = "\u2066\\g<0>\u2069"
_RIGHT, _LEFT = "\u200f", "\u200e"
# get_display reorders brackets without mirroring them. So each is followed by a mark of zero width
# that takes its direction: a bracket that comes out after its mark has to be mirrored.
_MARK = "\u200b"
_BRACKET = re.compile("([" + re.escape("".join(MIRRORED)) + "])")
_PLACED = re.compile(f"{_BRACKET.pattern}{_MARK}|{_MARK}(.)")
_OURS = str.maketrans("", "", f"\u2066\u2069{_RIGHT}{_LEFT}{_MARK}")
# Units inside a long word that aren't split: a written-out code point, a letter with points.
_UNIT = re.compile(f"{_POINTS}|.[\u05b0-\u05c7]*", re.DOTALL)


def is_hebrew(text: str) -> bool:
    """Return whether the text has any Hebrew letter."""
    return _HEBREW.search(text) is not None


def lines_of(text: str, width: float, measure: Callable[[str], float]) -> list[str]:
    """Break between words, and inside a word that is longer than a line; in reading order."""
    if measure(text) <= width:
        return [text]
    lines, room, space = [""], width, measure(" ")
    for word in text.split(" "):
        own = measure(word)
        if lines[-1] and own + space <= room:
            lines[-1] += f" {word}"
            room -= own + space
            continue
        pieces = [word] if own <= width else list(_pieces(word, width, measure))
        lines[-1:] = [lines[-1], *pieces] if lines[-1] else pieces
        room = width - measure(pieces[-1])
    return lines


def _pieces(word: str, width: float, measure: Callable[[str], float]) -> Iterator[str]:
    piece, room = "", width
    for unit in _UNIT.findall(word):
        own = measure(unit)
        if piece and own > room:
            yield piece
            piece, room = "", width
        piece += unit
        room -= own
    yield piece


def in_place(line: str, *, right_to_left: bool) -> str:
    """Return the characters of a line from left to right, in visual order.

    ``right_to_left`` is the direction of the text that the line belongs to. The line has no control
    characters, and none of Unicode's direction marks.
    """
    if not right_to_left and not is_hebrew(line):
        return line
    marked = _BRACKET.sub(f"\\g<0>{_MARK}", _WHOLE.sub(_ISOLATED, line))
    side, end = ("R", _RIGHT) if right_to_left else ("L", _LEFT)
    # The last character decides the direction of a bracket's mark at the end of the line.
    placed = get_display(marked + end, base_dir=side)
    return _PLACED.sub(_turned, placed).translate(_OURS)


def _turned(found: re.Match[str]) -> str:
    kept, turned = found.groups()
    return kept or MIRRORED[turned]
