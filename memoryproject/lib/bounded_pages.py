"""Pages of lists that may be endless: nobody counts a million rows to show fifty."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property

MOST_ROWS = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts and shows the first MOST_ROWS rows; a search or a filter leads to the others."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows[:MOST_ROWS].count())
