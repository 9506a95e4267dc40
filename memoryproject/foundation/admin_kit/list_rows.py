"""Rows of lists on narrow screens: two lines instead of a card with a line for each column.

The first line has the row's title with its time at the end, the second the other columns. The
style sheet (lists.css) does this by the classes that are set here. Wide screens show a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django import template
from django.contrib.admin.options import ModelAdmin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils import timezone
from django.utils.safestring import SafeString

register = template.Library()
CHECKBOX = "action_checkbox"
TIME, REST = "row-time", "row-rest"
TAG = re.compile(r"(<[^<>]*>)")
LETTER = re.compile(r"[^\W\d_]")
NOTHING = ("", "-", "–")
# A narrow row has no place for fields and buttons: the row's own page has them.
CONTROLS = ("<select", "<button", "<input")
ICON = "material-symbols"


@dataclass(frozen=True)
class Columns:
    """The names of a list's columns. ``title`` and ``time`` stand in a row's first line, and
    ``times`` are all that hold a time."""

    names: Sequence[str]
    title: str
    time: str
    times: frozenset[str]

    def classes(self, name: str, cell: str) -> str:
        """Return the class of a cell, by its column and by what it holds."""
        if name == CHECKBOX:
            return "row-check"
        if name == self.title:
            return "row-title"
        text = TAG.sub("", cell).strip()
        if text in NOTHING or any(control in cell for control in CONTROLS):
            return "row-hidden"
        if name == self.time:
            return TIME
        # Without its label, nobody knows what such a cell is about.
        is_bare = name in self.times or ICON in cell or not LETTER.search(text)
        return f"{REST} row-labelled" if is_bare else REST


@register.simple_tag
def two_line_rows(cl: ChangeList, rows: Iterable[Sequence[str]]) -> list[list[SafeString]]:
    """Return the rows' cells with the classes that say where each stands on a narrow screen.

    ``rows``: the cells of each row as HTML, in the order of the list's columns. The columns of
    the first line are the model admin's ``row_title`` and ``row_time``. Without them: the first
    column that holds no time, and the first that does.
    """
    columns = _columns(cl)
    return [list(_placed(columns, row)) for row in rows]


def _columns(cl: ChangeList) -> Columns:
    names = [each if isinstance(each, str) else each.__name__ for each in cl.list_display]
    times = frozenset(name for name in names if _holds_time(cl.model_admin, name))
    others = [name for name in names if name != CHECKBOX and name not in times]
    title = _chosen(cl, "row_title", others or [name for name in names if name != CHECKBOX])
    time = _chosen(cl, "row_time", [name for name in names if name in times and name != title])
    return Columns(names, title, time, times)


def _chosen(cl: ChangeList, option: str, found: Sequence[str]) -> str:
    chosen = getattr(cl.model_admin, option, None)
    return next(iter(found), "") if chosen is None else str(chosen)


def _holds_time(admin: ModelAdmin[Any], name: str) -> bool:
    shown = getattr(admin, name, None)
    ordered_by = str(getattr(shown, "admin_order_field", None) or name).lstrip("-")
    try:
        return isinstance(admin.opts.get_field(ordered_by), models.DateField)
    except FieldDoesNotExist:
        return False


def _placed(columns: Columns, row: Sequence[str]) -> Iterator[SafeString]:
    classes = [columns.classes(*each) for each in zip(columns.names, row, strict=True)]
    shown = [number for number, names in enumerate(classes) if names.startswith(REST)]
    for number, (names, cell) in enumerate(zip(classes, row, strict=True)):
        added = f"{names} row-next" if number in shown[1:] else names
        # The cell is unfold's, escaped, and begins with its tag and class.
        placed = cell.replace('class="', f'class="{added} ', 1)
        if names == "row-hidden" and TAG.sub("", cell).strip() in NOTHING:
            # What isn't there needs no sign in each row.
            placed = "".join(TAG.findall(placed))
        yield SafeString(_with_year_apart(placed) if names == TIME else placed)


def _with_year_apart(cell: str) -> str:
    """Mark the current year, which a narrow row leaves out."""
    year = f" {timezone.localtime().year}"
    parts = TAG.split(cell)
    # Every second part is a tag, whose attributes may hold the time, too.
    for number in range(0, len(parts), 2):
        if year in parts[number]:
            parts[number] = parts[number].replace(year, f'<span class="row-year">{year}</span>', 1)
            break
    return "".join(parts)
