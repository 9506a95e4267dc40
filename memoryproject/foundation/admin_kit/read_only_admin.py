"""A base class of admin pages for records that services write and staff only read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest

from memoryproject.foundation.admin_kit.staff_admin import StaffAdmin


class ReadOnlyAdmin(StaffAdmin):
    """Doesn't allow adding, changing or deleting.

    An edit would separate a record from the data derived from it.

    ``find_rows``: returns the rows of a list that a search finds. Without it Django searches.
    """

    find_rows: ClassVar[Callable[..., QuerySet[Any]] | None] = None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if self.find_rows is None:
            return super().get_search_results(request, queryset, search_term)
        return self.find_rows(queryset, search_term), False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
