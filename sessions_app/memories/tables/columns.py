"""Read a table as spreadsheets write it: its rows and cells, its kind, and its columns.

Kinds are recognised by their headers, in English and Hebrew.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.integrations.documents.sniffing import encoding_of
from memoryproject.foundation.text.characters import fold

MAX_BYTES = 512 * 1024
MAX_ROWS = 900
MAX_COLUMNS = 50
# The first rows tell which separator the table has.
_LOOKED_AT = 50
_SEPARATORS = (",", ";", "\t")
# Stands in no text: a table of one column may have commas in its sentences.
_NO_SEPARATOR = "\x1f"
_SEPARATOR_LINE = re.compile(r"sep=(.)\n", re.IGNORECASE)
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
    text = content.decode(encoding_of(content)[0], errors="replace")
    if "\x00" in text:
        raise TableError(_("This isn't a table of text."))
    return text


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


# The kinds of tables, and their columns.

HOURS, PRICES, QUESTIONS, FACTS = "hours", "prices", "questions", "facts"
KINDS: Mapping[str, object] = {
    HOURS: gettext_lazy("Opening hours"),
    PRICES: gettext_lazy("Prices"),
    QUESTIONS: gettext_lazy("Questions and answers"),
    FACTS: gettext_lazy("Facts, one a row"),
}

# By kind and column, what headers call it.
_NAMES: Mapping[str, Mapping[str, str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
# By place, where a table of a kind that was chosen has no headers.
_PLACES: Mapping[str, tuple[str, ...]] = {
    HOURS: ("day", "opens", "closes", "note"),
    PRICES: ("item", "price", "currency", "note"),
    QUESTIONS: ("question", "answer"),
    FACTS: ("fact",),
}
# One of each group is needed.
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    HOURS: (("day", "date"), ("opens", "hours")),
    PRICES: (("item",), ("price",)),
    QUESTIONS: (("question",), ("answer",)),
    FACTS: (("fact",),),
}


def _key(cell: str) -> str:
    return re.sub(r"[\s_:?*-]+", " ", fold(cell)).strip()


_FIELDS = {
    kind: {_key(name): field for field, names in fields.items() for name in names.split(",")}
    for kind, fields in _NAMES.items()
}


@dataclass(frozen=True)
class Columns:
    """The meaning of a table's columns, in their order; "" for one that isn't used.

    ``headers``: as the table calls them. ``rows``: the rows below the headers.
    """

    kind: str
    fields: tuple[str, ...]
    headers: tuple[str, ...]
    rows: tuple[Row, ...]

    def cell(self, row: Row, field: str) -> str:
        """Return the text of a cell; empty where the row or the table hasn't it."""
        place = self.fields.index(field) if field in self.fields else len(row.cells)
        return row.cells[place] if place < len(row.cells) else ""

    def called(self, field: str) -> str:
        """Return the name of a column as the table calls it."""
        return self.headers[self.fields.index(field)] if field in self.fields else field

    @property
    def unused(self) -> list[str]:
        """Return the names of columns that hold something and aren't used."""
        return [
            header or _("column %(number)s") % {"number": place + 1}
            for place, (field, header) in enumerate(zip(self.fields, self.headers, strict=True))
            if not field and any(cell for row in self.rows for cell in row.cells[place : place + 1])
        ]

    def too_long(self, row: Row) -> bool:
        """Say whether the row has texts beyond the table's columns."""
        return any(row.cells[len(self.fields) :])


def known_headers(cells: Sequence[str]) -> int:
    """Return how many cells of a row are headers of one kind of table."""
    return max(sum(_key(cell) in fields for cell in cells) for fields in _FIELDS.values())


def columns_of(rows: Sequence[Row], kind: str = "") -> Columns:
    """Return what the columns hold. ``kind``: the chosen one; else the headers tell it.

    Raises TableError.
    """
    if not rows:
        raise TableError(_("The table is empty."))
    first = rows[0]
    found = [each for each in ([kind] if kind else KINDS) if _is_header(first, each)]
    if found:
        columns = _by_headers(first, found[0], rows[1:])
    elif kind and not _has_header(first, kind):
        columns = _by_place(kind, rows)
    else:
        raise TableError(_unknown(first, kind))
    if not columns.rows:
        raise TableError(_("The table has a header and no rows."))
    return columns


def _is_header(row: Row, kind: str) -> bool:
    fields = {_FIELDS[kind].get(_key(cell)) for cell in row.cells}
    return all(fields & set(group) for group in _NEEDED[kind])


def _has_header(row: Row, kind: str) -> bool:
    return any(_key(cell) in _FIELDS[kind] for cell in row.cells)


def _by_headers(header: Row, kind: str, rows: Sequence[Row]) -> Columns:
    fields = [_FIELDS[kind].get(_key(cell), "") for cell in header.cells]
    for field in set(fields) - {""}:
        same = [header.cells[place] for place, each in enumerate(fields) if each == field]
        if len(same) > 1:
            text = _("the columns “%(one)s” and “%(other)s” mean the same. Rename one of them.")
            raise TableError(text % {"one": same[0], "other": same[1]}, header.number)
    return Columns(kind, tuple(fields), header.cells, tuple(rows))


def _by_place(kind: str, rows: Sequence[Row]) -> Columns:
    width = max(len(row.cells) for row in rows)
    places = _PLACES[kind]
    fields = (*places, *[""] * (width - len(places)))
    return Columns(kind, fields, fields, tuple(rows))


def _unknown(first: Row, kind: str) -> str:
    seen = ", ".join(f"“{cell}”" for cell in first.cells if cell)
    if not kind:
        text = _(
            "The first row has no headers that are known: %(seen)s. Choose what the table holds, "
            "or name the columns as in the examples."
        )
        return text % {"seen": seen}
    needed = ", ".join("/".join(group) for group in _NEEDED[kind])
    text = _("The first row lacks a column: it has %(seen)s, and %(needed)s are needed.")
    return text % {"seen": seen, "needed": needed}


# Make sentences to remember from the rows of a table, or the reason why there is none.

_HEBREW = re.compile("[א-ת]")


@dataclass(frozen=True)
class Entry:
    """A sentence, and the rows that it comes from.

    ``subject``: what it is about; a later table that says otherwise about it replaces it.
    ``ends``: when it stops to count. ``problem``: why it can't be remembered; then ``text`` is
    what the rows say, as they say it.
    """

    rows: tuple[int, ...]
    text: str
    subject: str = ""
    ends: datetime | None = None
    problem: str = ""


class RowProblemError(Exception):
    """A row can't be understood. The text explains why to the author of the table."""


def entry_refused(row: Row, problem: RowProblemError) -> Entry:
    """Return the entry of a row that can't be understood."""
    return Entry((row.number,), " · ".join(filter(None, row.cells)), problem=str(problem))


def is_hebrew(*texts: str) -> bool:
    """Say whether the sentence about these cells is a Hebrew one."""
    return any(_HEBREW.search(text) for text in texts)


def with_note(sentence: str, note: str) -> str:
    """Return the sentence with its full stop, and the note in it."""
    note = note.strip().rstrip(".")
    return f"{sentence} ({note})." if note else f"{sentence}."


# Tables to download and fill in, one for each kind, in English and Hebrew.

_EXAMPLES = Path(__file__).parent / "examples"


def example_table(kind: str, *, hebrew: bool) -> bytes:
    """Return a table as spreadsheets open it: UTF-8 with a byte order mark, lines as in CSV."""
    text = (_EXAMPLES / f"{kind}.{'he' if hebrew else 'en'}.csv").read_text(encoding="utf-8")
    return text.replace("\n", "\r\n").encode("utf-8-sig")
