"""The kinds of tables, and the columns that they are recognised by, in English and Hebrew."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.text.characters import fold
from sessions_app.memories.tables.read_table import Row, TableError

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

    def has(self, field: str) -> bool:
        return field in self.fields

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
