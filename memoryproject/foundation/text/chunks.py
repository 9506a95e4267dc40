"""Split long texts into passages that can be found and read by themselves.

A passage ends at the end of a paragraph or a sentence. A sentence longer than the limit of a
passage is split between words, and a word longer than that at any place.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memoryproject.foundation.text.characters import cut_between_characters

TARGET = 800
MAX_COUNT = 1_200
# A heading is short and has no full stop at its end, like a label before a list.
_MAX_HEADING_LENGTH = 90
# Lines count as wrapped if the longest has so many characters. A line that is much shorter ends a
# sentence, wrapped or not.
_WRAPPED = 50
_SHORT_LINE = 0.6

_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
# A full stop with the closing quotes and brackets after it, then a space; or a line's end.
SENTENCE_END = re.compile("[.!?…؟۔।։׃][\"'”’»)\\]״׳]*(?=\\s)|[。！？][」』”’）]*|(?=\\n)")
_LIST_ITEM = re.compile(r"\n\s*(?:[-*•–—·▪◦]|\(?(?:\d{1,3}|[^\W\d])[.)])\s")
_STOPPED = re.compile("[.!?…؟۔।։׃。！？;,،][\"'”’»)\\]״׳]*$")
_MARKDOWN_HEADING = re.compile(r"#{1,6}\s")


@dataclass(frozen=True)
class Passage:
    """One passage. ``text`` is the source's [start:end], without surrounding white space."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Unit:
    """A unit that is kept whole if possible: a sentence, or a piece of a very long one."""

    start: int
    end: int
    ends_paragraph: bool = False
    is_heading: bool = False


def cut_text(text: str, *, target: int = TARGET, most: int = MAX_COUNT) -> list[Passage]:
    """Return the passages in order: about ``target`` characters each, ``most`` at most.

    Every character is in exactly one passage, except white space at the borders.
    """
    passages: list[Passage] = []
    gathered: list[_Unit] = []
    for unit in _units(text, most):
        if gathered and _is_full(gathered, unit, target, most):
            kept, gathered = _without_heading(gathered)
            passages.append(_passage(text, kept))
            if gathered and unit.end - gathered[0].start > most:
                passages.append(_passage(text, gathered))
                gathered = []
        gathered.append(unit)
    if gathered:
        passages.append(_passage(text, gathered))
    return passages


def _passage(text: str, units: list[_Unit]) -> Passage:
    start, end = units[0].start, units[-1].end
    return Passage(text[start:end], start, end)


def _is_full(gathered: list[_Unit], unit: _Unit, target: int, most: int) -> bool:
    """Return whether the next unit begins a new passage."""
    start = gathered[0].start
    if unit.end - start > most:
        return True
    length = gathered[-1].end - start
    if gathered[-1].ends_paragraph and (unit.is_heading or length >= target // 2):
        # A short paragraph is joined with the next one, but a heading begins a new passage.
        return length >= target // 4 if unit.is_heading else unit.end - start > target
    return unit.end - start > target and length >= target // 2


def _without_heading(gathered: list[_Unit]) -> tuple[list[_Unit], list[_Unit]]:
    """Return the units of a passage, and the headings at its end that belong to the next one."""
    count = len(gathered)
    while count > 1 and gathered[count - 1].is_heading:
        count -= 1
    if gathered[count - 1].is_heading:
        return gathered, []
    return gathered[:count], gathered[count:]


def _units(text: str, most: int) -> Iterator[_Unit]:
    for start, end in _paragraphs(text):
        sentences = list(_sentences(text, start, end))
        heading = len(sentences) == 1 and _is_heading(text[start:end])
        for first, last in sentences:
            pieces = list(_pieces(text, first, last, most))
            for piece in pieces:
                ends = last == end and piece is pieces[-1]
                yield _Unit(*piece, ends_paragraph=ends, is_heading=heading)


def _is_heading(paragraph: str) -> bool:
    if "\n" in paragraph or len(paragraph) > _MAX_HEADING_LENGTH:
        return False
    return bool(_MARKDOWN_HEADING.match(paragraph)) or not _STOPPED.search(paragraph)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each paragraph between empty lines, without white space around it.

    A line that begins as a Markdown heading is a paragraph of its own.
    """
    start = 0
    for gap in _PARAGRAPH_END.finditer(text):
        yield from _stretches(text, start, gap.start())
        start = gap.end()
    yield from _stretches(text, start, len(text))


def _stretches(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    place = start
    while place < end and _MARKDOWN_HEADING.match(text, place, end):
        line_end = text.find("\n", place, end)
        line_end = end if line_end < 0 else line_end
        yield from _trimmed(text, place, line_end)
        place = line_end + 1
    yield from _trimmed(text, place, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    place = line = start
    longest = max(map(len, text[start:end].split("\n")))
    for found in SENTENCE_END.finditer(text, start, end):
        goes_on = False
        if not found.group():
            goes_on = not _line_ends_sentence(text, line, found.start(), longest)
            line = found.end() + 1
        if found.end() > place and not goes_on:
            yield from _trimmed(text, place, found.end())
            place = found.end()
    yield from _trimmed(text, place, end)


def _line_ends_sentence(text: str, start: int, end: int, longest: int) -> bool:
    """Return whether a line stands by itself (in a list, a table, an address).

    Otherwise it was wrapped, and its sentence continues in the next line.
    """
    if longest < _WRAPPED or end - start < _SHORT_LINE * longest:
        return True
    return _LIST_ITEM.match(text, end) is not None


def _pieces(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the sentence, in pieces of at most ``most`` if it is longer."""
    while end - start > most:
        cut = _cut_before(text, start, start + most)
        yield from _trimmed(text, start, cut)
        start = cut
        while start < end and text[start].isspace():
            start += 1
    yield from _trimmed(text, start, end)


def _cut_before(text: str, start: int, limit: int) -> int:
    """Return the last place for a cut.

    It is at white space in the later half, else between two characters as a reader sees them.
    """
    for place in range(limit, start + (limit - start) // 2, -1):
        if text[place].isspace():
            return place
    return start + cut_between_characters(text[start : limit + 1], limit - start)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the span without surrounding white space; nothing if it is only white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


# Divide texts that are too long for a model.

MIN_HALF_LENGTH = 200


def in_parts(texts: Sequence[str], *, room: int) -> list[list[str]]:
    """Return the texts in groups of at most ``room`` characters, in order.

    A longer text is divided at a space. Nothing is left out.
    """
    parts: list[list[str]] = [[]]
    used = 0
    for piece in (piece for text in texts for piece in pieces(text, room=room)):
        if parts[-1] and used + len(piece) + 1 > room:
            parts.append([])
            used = 0
        parts[-1].append(piece)
        used += len(piece) + 1
    return [part for part in parts if part]


def pieces(text: str, *, room: int) -> list[str]:
    """Return the text in pieces of at most ``room`` characters."""
    found = []
    while len(text) > room:
        space = text.rfind(" ", room // 2, room)
        end = room if space < 0 else space + 1
        found.append(text[:end])
        text = text[end:]
    return [*found, text] if text else found


def halves(texts: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the texts in two halves of about the same length.

    Returns None if they are too short for that to help.
    """
    total = sum(len(text) for text in texts)
    if total < 2 * MIN_HALF_LENGTH:
        return None
    divided = in_parts(texts, room=total // 2 + 1)
    first, rest = divided[0], [text for part in divided[1:] for text in part]
    return (first, rest) if rest else None
