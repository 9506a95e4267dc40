"""How texts are cut and grouped to fit the limits of an embeddings API. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def split_text(text: str, max_bytes: int) -> list[str]:
    """The text in pieces of at most ``max_bytes`` bytes of UTF-8 (4 at least), in order;
    nothing is lost."""
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
    """The texts in groups of at most ``most_texts`` and, unless a single text is larger,
    ``max_bytes``, in order."""
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
