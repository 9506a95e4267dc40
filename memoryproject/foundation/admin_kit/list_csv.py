"""A list of the admin as CSV: its rows by the search and the filters, with the columns it shows."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.admin.utils import label_for_field, lookup_field
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import ForeignKey
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from memoryproject.foundation.admin_kit.bounded_pages import MAX_ROWS
from memoryproject.foundation.text.csv_lines import CSV_TYPE, csv_lines

# In an address: the list as a file instead of a page.
PARAMETER = "_csv"
TICK_BOX = "action_checkbox"


def list_csv(
    request: HttpRequest, changes: ChangeList, columns: Mapping[str, str]
) -> tuple[bytes, int]:
    """Return the file and the number of its rows, at most MAX_ROWS.

    ``changes``: the list as its page has it. ``columns``: what stands in the file for some columns
    of the page; "" leaves one out.
    """
    changes.list_per_page = MAX_ROWS
    changes.page_num = 1
    changes.get_results(request)
    rows = list(changes.result_list)
    columns = {**columns, TICK_BOX: ""}
    names = [name for shown in changes.list_display if (name := columns.get(str(shown), shown))]
    model, admin = changes.model, changes.model_admin
    titles = [str(label_for_field(name, model, admin)) for name in names]
    shown = ([row.pk, *_cells(row, names, admin)] for row in rows)
    return b"".join(csv_lines(["id", *map(capfirst, titles)], shown)), len(rows)


def csv_answer(name: str, titles: Sequence[str], rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """Return a table as a download. ``name``: the beginning of the file's name."""
    return csv_download(name, b"".join(csv_lines(titles, rows)))


def csv_download(name: str, content: bytes) -> HttpResponse:
    """Return a CSV file as a download."""
    file = f"{name}-{timezone.localtime():%Y-%m-%d-%H%M}.csv"
    return as_download(HttpResponse(content, content_type=CSV_TYPE), file)


def _cells(row: Any, names: Sequence[Any], admin: Any) -> Iterator[Any]:
    for name in names:
        try:
            field, _, value = lookup_field(name, row, admin)
        except ObjectDoesNotExist:
            yield ""
            continue
        if isinstance(field, ForeignKey):
            value = getattr(row, field.name)
        elif field is not None and field.flatchoices:
            value = dict(field.flatchoices).get(value, value)
        yield plain_value(value)


def plain_value(value: Any) -> Any:
    """Return a value as a spreadsheet reads it."""
    if isinstance(value, datetime):
        return timezone.localtime(value).isoformat(sep=" ", timespec="seconds")
    if isinstance(value, SafeString):
        # Each element stands for itself: without a space its words would run together.
        return " ".join(html.unescape(strip_tags(value.replace("<", " <"))).split())
    if value is None or isinstance(value, (int, float)):
        return value
    return str(value)


# Responses that the browser saves as a file.

Answer = TypeVar("Answer", bound=HttpResponseBase)


def as_download(answer: Answer, file: str) -> Answer:
    """Have the browser save the response under this name, and keep no other copy of it."""
    answer["Content-Disposition"] = f'attachment; filename="{file}"'
    answer["Cache-Control"] = "no-store"
    return answer
