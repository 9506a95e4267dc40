"""Render a document as PDF, in the document's language and direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from sessions_app.forgetting.receipts.document import Document
from sessions_app.forgetting.receipts.fonts import (
    BOLD,
    FONTS_LOCK,
    REGULAR,
    fonts_load,
    readable,
    text_width,
)
from sessions_app.forgetting.receipts.pdf_lines import in_place, is_hebrew, lines_of

MARGIN = 18 * mm
WIDTH = A4[0] - 2 * MARGIN
NAMES = 52 * mm
BETWEEN = 4 * mm
RULE = HexColor("#d8e0dc")


@dataclass(frozen=True)
class _Style:
    """A text style: ``size``, ``leading`` (line to line) and space ``before``, in points."""

    font: str
    size: float
    leading: float
    before: float = 0
    colour: Color = HexColor("#000000")

    def measure(self, text: str) -> float:
        return text_width(text, self.font, self.size)


_TITLE = _Style(BOLD, 18, 24)
_HEAD = _Style(BOLD, 11, 15, before=10)
_CELL = _Style(REGULAR, 9, 13, before=1)
_NOTE = _Style(REGULAR, 9, 13, before=4, colour=HexColor("#55635d"))
_NUMBER = _Style(REGULAR, 8, 10)
# Keeps a heading from standing alone at the foot of a page.
_FOLLOWING = 3 * _CELL.leading


def as_pdf(document: Document) -> bytes:
    """Render A4 pages with numbers. The same document gives the same bytes."""
    held = BytesIO()
    fonts_load()
    canvas = Canvas(
        held,
        pagesize=A4,
        pageCompression=1,
        invariant=1,
        initialFontName=REGULAR,
        lang=document.language,
    )
    canvas.setTitle(readable(document.title))
    canvas.setAuthor("")
    if document.is_right_to_left:
        canvas.setViewerPreference("Direction", "R2L")
    _write(document, _Pages(canvas, document.is_right_to_left))
    with FONTS_LOCK:
        canvas.save()
    return held.getvalue()


def _write(document: Document, pages: _Pages) -> None:
    pages.text(document.title, _TITLE)
    for part in document.parts:
        pages.text(part.title, _HEAD, following=_FOLLOWING)
        for fact in part.facts:
            pages.row(fact, (NAMES, WIDTH - NAMES))
        for row in part.rows:
            pages.row(row, (WIDTH - NAMES, NAMES))
    pages.gap(6 * mm)
    for note in document.notes:
        pages.text(note, _NOTE)
    pages.end()


class _Pages:
    """Draw rows one below the other, so that time and memory grow with their number.

    Columns start at the side where reading starts, and each text is aligned by its own direction.
    """

    def __init__(self, canvas: Canvas, right_to_left: bool) -> None:
        self._canvas = canvas
        self._right_to_left = right_to_left
        self._y = A4[1] - MARGIN

    def text(self, text: str, style: _Style, *, following: float = 0) -> None:
        """Draw a heading or a note; ``following`` is the space needed after it on the same page."""
        self._rows([text], [WIDTH], style, following)

    def row(self, cells: Sequence[str], widths: Sequence[float]) -> None:
        """Draw a row of a table, with a line below it."""
        self._rows(cells, widths, _CELL, following=0)
        self._y -= 4
        self._canvas.setStrokeColor(RULE)
        self._canvas.setLineWidth(0.4)
        self._canvas.line(MARGIN, self._y, MARGIN + WIDTH, self._y)

    def gap(self, height: float) -> None:
        self._y -= height

    def end(self) -> None:
        self._turn()

    def _rows(
        self, cells: Sequence[str], widths: Sequence[float], style: _Style, following: float
    ) -> None:
        columns = [
            lines_of(readable(cell), width - BETWEEN, style.measure)
            for cell, width in zip(cells, widths, strict=True)
        ]
        height = max(map(len, columns))
        self._make_room(style.before + height * style.leading + following)
        self._y -= style.before
        for number in range(height):
            self._make_room(style.leading)
            self._y -= style.leading
            self._line([lines[number : number + 1] for lines in columns], cells, widths, style)

    def _line(
        self,
        pieces: Sequence[Sequence[str]],
        cells: Sequence[str],
        widths: Sequence[float],
        style: _Style,
    ) -> None:
        """Draw one line of each cell; ``pieces`` is empty for a cell that has ended."""
        begin = 0.0
        for piece, cell, width in zip(pieces, cells, widths, strict=True):
            for line in piece:
                # A value without Hebrew, such as an id, reads from left to right.
                placed = in_place(line, right_to_left=self._right_to_left and is_hebrew(cell))
                self._draw(placed, begin, style)
            begin += width

    def _draw(self, placed: str, begin: float, style: _Style) -> None:
        """Draw text; ``begin`` is the distance in points from the side where reading starts."""
        self._canvas.setFont(style.font, style.size)
        self._canvas.setFillColor(style.colour)
        if self._right_to_left:
            self._canvas.drawRightString(MARGIN + WIDTH - begin, self._y, placed)
        else:
            self._canvas.drawString(MARGIN + begin, self._y, placed)

    def _make_room(self, height: float) -> None:
        """Start a new page if the space is too small; longer content starts on this page."""
        if self._y - min(height, A4[1] - 2 * MARGIN) < MARGIN:
            self._turn()

    def _turn(self) -> None:
        self._canvas.setFont(_NUMBER.font, _NUMBER.size)
        self._canvas.setFillColor(_NUMBER.colour)
        number, height = str(self._canvas.getPageNumber()), 10 * mm
        if self._right_to_left:
            self._canvas.drawString(MARGIN, height, number)
        else:
            self._canvas.drawRightString(A4[0] - MARGIN, height, number)
        self._canvas.showPage()
        self._y = A4[1] - MARGIN
