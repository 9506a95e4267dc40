"""Make sentences to remember from the rows of a table, or the reason why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from sessions_app.memories.tables.read_table import Row

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
