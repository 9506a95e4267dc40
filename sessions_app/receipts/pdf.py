"""A document as PDF, with the fonts that every reader has.

They know Latin letters alone. What they lack, such as a Hebrew user name, is written by its code
points, so that it can be told for certain; so the document itself is in English.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.units import mm
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from sessions_app.receipts.document import Document

MARGIN = 18 * mm
WIDTH = A4[0] - 2 * MARGIN
NAMES = 52 * mm
# Long tables are laid out in pieces: the time for one grows with the square of its rows.
ROWS_AT_ONCE = 40

_STYLES = getSampleStyleSheet()
_TITLE = ParagraphStyle("title", parent=_STYLES["Title"], alignment=0, fontSize=18, spaceAfter=8)
_HEAD = ParagraphStyle("head", parent=_STYLES["Heading2"], fontSize=11, spaceBefore=10)
_CELL = ParagraphStyle("cell", parent=_STYLES["BodyText"], fontSize=9, leading=12, wordWrap="CJK")
_NOTE = ParagraphStyle("note", parent=_CELL, textColor=colors.HexColor("#55635d"), spaceBefore=4)
_LINES = TableStyle(
    [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, -1), 0.4, colors.HexColor("#d8e0dc")),
        ("LEFTPADDING", (0, 0), (-1, -1), 2),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
    ]
)


def as_pdf(document: Document) -> bytes:
    """A4 pages with numbers. The same document gives the same bytes."""
    held = BytesIO()
    pages = SimpleDocTemplate(
        held,
        pagesize=A4,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
        topMargin=MARGIN,
        bottomMargin=MARGIN,
        title=readable(document.title),
        author="",
        invariant=1,
    )
    pages.build(list(_flow(document)), onFirstPage=_numbered, onLaterPages=_numbered)
    return held.getvalue()


def readable(text: str) -> str:
    """What the fonts can show; any other character as its code point."""
    return "".join(each if _is_shown(each) else f"[U+{ord(each):04X}]" for each in text)


def _is_shown(character: str) -> bool:
    try:
        character.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return character.isprintable()


def _flow(document: Document) -> Iterator[Any]:
    yield _paragraph(document.title, _TITLE)
    for part in document.parts:
        yield _paragraph(part.title, _HEAD)
        yield from _tables(part.facts, (NAMES, WIDTH - NAMES))
        yield from _tables(part.rows, (WIDTH - NAMES, NAMES))
    yield Spacer(1, 6 * mm)
    for note in document.notes:
        yield _paragraph(note, _NOTE)


def _tables(rows: Sequence[Sequence[str]], widths: Sequence[float]) -> Iterator[Table]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        cells = [
            [_paragraph(value, _CELL) for value in row]
            for row in rows[start : start + ROWS_AT_ONCE]
        ]
        yield Table(cells, colWidths=widths, style=_LINES)


def _paragraph(text: str, style: ParagraphStyle) -> Paragraph:
    return Paragraph(escape(readable(text)), style)


def _numbered(canvas: Any, pages: Any) -> None:
    canvas.saveState()
    canvas.setFont("Helvetica", 8)
    canvas.drawRightString(A4[0] - MARGIN, 10 * mm, str(pages.page))
    canvas.restoreState()
