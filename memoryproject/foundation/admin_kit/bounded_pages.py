"""Pages of lists that may be endless: nobody counts a million rows to show fifty."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.core.paginator import Page, Paginator
from django.db.models import Count, Func, QuerySet
from django.utils.functional import cached_property

MAX_ROWS = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts and shows the first ``most`` rows of a queryset; a search or a filter leads to the
    others. ``more``: there are others."""

    most = MAX_ROWS

    @cached_property
    def count(self) -> int:
        return min(self._counted[0], self.most)

    @property
    def more(self) -> bool:
        return self._counted[0] > self.most

    @property
    def only_page(self) -> QuerySet[Any] | None:
        """The rows, where one page holds them all: by their keys, since a filter that leaves so
        few has looked at every row to count them."""
        number, keys = self._counted
        if number > self.per_page:
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
        """How many rows there are, at most one more than are shown, and keys of a page of them.
        Which of them come first makes no difference to how many they are."""
        rows: Any = self.object_list
        some = rows.order_by()[: self.most + 1]
        first = Func(ArrayAgg("pk"), template=f"(%(expressions)s)[1:{self.per_page}]")
        found = some.aggregate(number=Count("pk"), keys=first)
        return found["number"], found["keys"] or []
