"""Lists that may be very long: their pages, and the list as CSV."""

import csv
import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from django.contrib.admin.utils import label_for_field, lookup_field
from django.contrib.admin.views.main import ChangeList
from django.contrib.postgres.aggregates import ArrayAgg
from django.core.exceptions import ObjectDoesNotExist
from django.core.paginator import Page, Paginator
from django.db.models import Count, ForeignKey, Func, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from django.utils.text import capfirst

MAX_ROWS = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts and shows the first ``most`` rows of a queryset.

    ``more``: there are other rows; a search or a filter finds them.
    """

    most = MAX_ROWS

    @cached_property
    def count(self) -> int:
        return min(self._counted[0], self.most)

    @property
    def more(self) -> bool:
        return self._counted[0] > self.most

    @property
    def only_keys(self) -> list[Any] | None:
        """Return the keys of all rows if they fit on one page."""
        number, keys = self._counted
        return keys if number <= self.per_page else None

    @property
    def only_page(self) -> QuerySet[Any] | None:
        """Return the rows if they fit on one page, by their keys.

        A filter with so few results has looked at every row to count them; keys avoid a second
        search.
        """
        keys = self.only_keys
        if keys is None:
            return None
        rows: Any = self.object_list
        found: QuerySet[Any] = rows.filter(pk__in=keys) if keys else rows.none()
        return found

    def page(self, number: int | str) -> Page[Any]:
        rows = self.only_page
        if rows is None:
            return super().page(number)
        return Page(rows, self.validate_number(number), self)

    @cached_property
    def _counted(self) -> tuple[int, list[Any]]:
        """Return the number of rows, one more than shown at most, and the keys of one page.

        The order of the rows doesn't affect their number.
        """
        rows: Any = self.object_list
        some = rows.order_by()[: self.most + 1]
        first = Func(ArrayAgg("pk"), template=f"(%(expressions)s)[1:{self.per_page}]")
        found = some.aggregate(number=Count("pk"), keys=first)
        return found["number"], found["keys"] or []


# A list as CSV: its rows by the search and the filters, with the columns it shows.


# In an address: the list as a file instead of a page.
PARAMETER = "_csv"
TICK_BOX = "action_checkbox"


Column: TypeAlias = tuple[Any, Callable[[Any], Any]]


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


def csv_of(name: str, columns: Iterable[Column], rows: Iterable[Any]) -> HttpResponse:
    """Return rows as a download: each column has its title, and what stands in it of a row."""
    columns = list(columns)
    lines = ([plain_value(value(row)) for _title, value in columns] for row in rows)
    return csv_answer(name, [str(title) for title, _value in columns], lines)


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


# The lines of a file of CSV.

CSV_TYPE = "text/csv; charset=utf-8"
# Characters that a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def csv_lines(titles: Sequence[str], rows: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    """Yield the titles and then each row.

    The encoding is UTF-8 with a byte order mark, which spreadsheets need to recognise it. Texts
    that a spreadsheet would evaluate begin with an apostrophe.
    """
    writer = csv.writer(_Echo())
    yield b"\xef\xbb\xbf" + writer.writerow(titles)
    for row in rows:
        yield writer.writerow([_harmless(part) for part in row])


def _harmless(part: Any) -> Any:
    if isinstance(part, str) and part.lstrip(" ").startswith(FORMULA):
        return f"'{part}"
    return "" if part is None else part


class _Echo:
    """A file for csv that returns what is written to it."""

    def write(self, text: str) -> bytes:
        return text.encode()
