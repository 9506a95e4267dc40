"""Render a document as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.forgetting.receipts.document import Document, Part


def as_text(document: Document) -> str:
    """Return the lines with the line ends that every system reads."""
    return "\r\n".join(_lines(document)) + "\r\n"


def _lines(document: Document) -> Iterator[str]:
    yield document.title
    yield "=" * len(document.title)
    for part in document.parts:
        yield ""
        yield from _part(part)
    yield ""
    yield from document.notes


def _part(part: Part) -> Iterator[str]:
    yield part.title
    yield "-" * len(part.title)
    for name, value in part.facts:
        yield f"{name}: {value}"
    for row in part.rows:
        yield ": ".join(row)
