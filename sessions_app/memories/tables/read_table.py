"""Read a table as spreadsheets write it: its encoding, its separator, its rows and cells."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from django.utils.translation import gettext as _

MAX_BYTES = 512 * 1024
MAX_ROWS = 900
MAX_COLUMNS = 50
# The first rows tell which separator the table has.
_LOOKED_AT = 50
_SEPARATORS = (",", ";", "\t")
# Stands in no text: a table of one column may have commas in its sentences.
_NO_SEPARATOR = "\x1f"
_SEPARATOR_LINE = re.compile(r"sep=(.)\n", re.IGNORECASE)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# In windows-1255 these bytes are the Hebrew letters, in windows-1252 letters with accents. Words
# have Hebrew letters in a row; letters with accents stand between others.
_HIGH = re.compile(rb"[\xe0-\xfa]+")
_ZIP = b"PK\x03\x04"
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"


class TableError(Exception):
    """The table can't be read at all. ``row``: where, counted from 1; 0 if it's no single row."""

    def __init__(self, text: str, row: int = 0) -> None:
        self.row = row
        super().__init__(
            _("Row %(row)s: %(problem)s") % {"row": row, "problem": text} if row else text
        )


@dataclass(frozen=True)
class Row:
    """A row that isn't empty. ``number``: as spreadsheets count, from 1."""

    number: int
    cells: tuple[str, ...]


def text_of(content: bytes) -> str:
    """Return the text of a file. Raises TableError where it is no text, or too long."""
    if len(content) > MAX_BYTES:
        raise TableError(
            _("The table is larger than %(most)s KB. Divide it.") % {"most": MAX_BYTES // 1024}
        )
    if content.startswith((_ZIP, _OLD_EXCEL)):
        raise TableError(
            _(
                "This is a spreadsheet's own file. Save it as CSV there (“Save as…”), or copy "
                "its cells."
            )
        )
    text = _decoded(content)
    if "\x00" in text:
        raise TableError(_("This isn't a table of text."))
    return text


def _decoded(content: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, errors="replace")
    # In UTF-16 the ends of lines have a zero, always on the same side.
    for encoding, end, others in (
        ("utf-16-le", b"\n\0", content[::2]),
        ("utf-16-be", b"\0\n", content[1::2]),
    ):
        if end in content and 0 not in others:
            return content.decode(encoding, errors="replace")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("cp1255" if _is_hebrew(content) else "cp1252", errors="replace")


def _is_hebrew(content: bytes) -> bool:
    runs = [len(run) for run in _HIGH.findall(content)]
    return sum(length for length in runs if length > 1) > sum(runs) / 2


def rows_of(
    text: str, *, headers_in: Callable[[Sequence[str]], int], one_column: bool = False
) -> list[Row]:
    """Return the rows that aren't empty; cells without spaces around them.

    headers_in: says how many cells of a row are known headers. one_column: the table has a single
    column, unless its first row is one of several headers. Raises TableError.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    separator, text = _separator_of(text, headers_in, one_column)
    rows: list[Row] = []
    for number, cells in _records(text, separator):
        stripped = tuple(cell.strip() for cell in cells)
        if not any(stripped):
            continue
        if len(rows) > MAX_ROWS:
            raise TableError(
                _("The table has more than %(most)s rows. Divide it.") % {"most": MAX_ROWS}
            )
        if len(stripped) > MAX_COLUMNS:
            most = _("has %(count)s columns, at most %(most)s")
            raise TableError(most % {"count": len(stripped), "most": MAX_COLUMNS}, number)
        rows.append(Row(number, stripped))
    return rows


def _records(text: str, separator: str) -> Iterable[tuple[int, list[str]]]:
    """Yield the records with their numbers. A quotation mark that isn't closed loses no row."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 0
    while True:
        number += 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error:
            problem = _(
                "a cell's quotation marks don't match. A cell that begins with one ends with one, "
                "and has two where it means one."
            )
            raise TableError(problem, number) from None
        yield number, cells


def _separator_of(
    text: str, headers_in: Callable[[Sequence[str]], int], one_column: bool
) -> tuple[str, str]:
    """Return the separator, and the text without a line that names it."""
    named = _SEPARATOR_LINE.match(text)
    if named:
        return named[1], text[named.end() :]
    found = {separator: _looked_at(text, separator) for separator in _SEPARATORS}

    def fitness(separator: str) -> tuple[int, int, int]:
        first, *others = found[separator]
        alike = sum(len(cells) == len(first) > 1 for cells in others)
        return headers_in(first) if len(first) > 1 else 0, alike, len(first)

    best = max(_SEPARATORS, key=fitness)
    known, _alike, columns = fitness(best)
    if columns == 1 or (one_column and not known):
        return _NO_SEPARATOR, text
    return best, text


def _looked_at(text: str, separator: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        looked_at = [cells for cells in islice(reader, _LOOKED_AT) if any(cells)]
    except csv.Error:
        looked_at = []
    return looked_at or [[""]]
