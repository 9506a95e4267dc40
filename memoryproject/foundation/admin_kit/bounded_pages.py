"""Pages of lists that may be very long: a million rows are not counted to show fifty."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.core.paginator import Page, Paginator
from django.db.models import Count, Func, QuerySet
from django.utils.functional import cached_property

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
