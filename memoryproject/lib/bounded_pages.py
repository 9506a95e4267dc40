"""Pages of lists that may be endless: nobody counts a million rows to show fifty."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property

MOST_ROWS = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts and shows the first ``most`` rows of a queryset; a search or a filter leads to the
    others. ``more``: there are others."""

    most = MOST_ROWS

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.most)

    @property
    def more(self) -> bool:
        return self._counted > self.most

    @cached_property
    def _counted(self) -> int:
        """One more than are shown tells that there are others. Which of them come first makes no
        difference to how many they are."""
        rows: Any = self.object_list
        return int(rows.order_by()[: self.most + 1].count())
