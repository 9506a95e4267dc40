"""An admin page for records that services write and staff only read."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from memoryproject.lib.staff_admin import StaffAdmin


class ReadOnlyAdmin(StaffAdmin):
    """Nobody adds, changes or deletes here: editing would part a record from what was
    derived from it."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Titled by what it lists, since there is nothing to be selected for a change."""
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
