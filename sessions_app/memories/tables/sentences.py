"""Questions with answers, and facts as they are written."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from sessions_app.memories.tables.columns import Columns
from sessions_app.memories.tables.entries import Entry

_ENDS = ("?", "؟", "!", ".", ":", "…")


def question_entries(columns: Columns) -> Iterator[Entry]:
    """Yield each question with its answer, as one text."""
    for row in columns.rows:
        cells = {name: columns.cell(row, name) for name in ("question", "answer")}
        empty = next((name for name, text in cells.items() if not text), None)
        if empty:
            problem = _("Column “%(column)s” is empty.") % {"column": columns.called(empty)}
            shown = " ".join(filter(None, row.cells))
            yield Entry((row.number,), shown, problem=problem)
            continue
        question = cells["question"]
        mark = "" if question.endswith(_ENDS) else "?"
        text = f"{question}{mark} {cells['answer']}"
        yield Entry((row.number,), text, f"question {question.rstrip('?؟ ')}")


def fact_entries(columns: Columns) -> Iterator[Entry]:
    """Yield the facts."""
    for row in columns.rows:
        text = columns.cell(row, "fact")
        problem = _("Column “%(column)s” is empty.") % {"column": columns.called("fact")}
        yield Entry((row.number,), text or " ".join(row.cells), problem="" if text else problem)
