"""Split and group texts to fit the limits of an embeddings API. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def split_text(text: str, max_bytes: int) -> list[str]:
    """Return the text in pieces of at most ``max_bytes`` bytes of UTF-8 (at least 4), in order.

    No text is lost.
    """
    if len(text) * 4 <= max_bytes or len(text.encode("utf-8")) <= max_bytes:
        return [text]
    pieces = []
    start = size = 0
    for place, char in enumerate(text):
        width = len(char.encode("utf-8"))
        if size + width > max_bytes:
            pieces.append(text[start:place])
            start, size = place, 0
        size += width
    return [*pieces, text[start:]]


def group_texts(texts: Iterable[str], *, most_texts: int, max_bytes: int) -> Iterator[list[str]]:
    """Yield the texts in order, in groups of at most ``most_texts`` texts and ``max_bytes`` bytes.

    A single text that is larger than ``max_bytes`` is a group by itself.
    """
    group: list[str] = []
    size = 0
    for text in texts:
        width = len(text.encode("utf-8"))
        if group and (len(group) == most_texts or size + width > max_bytes):
            yield group
            group, size = [], 0
        group.append(text)
        size += width
    if group:
        yield group
