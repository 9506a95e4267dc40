"""An admin page for records that services write and staff only read."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from memoryproject.foundation.admin_kit.staff_admin import StaffAdmin


class ReadOnlyAdmin(StaffAdmin):
    """Nobody adds, changes or deletes here: editing would part a record from what was
    derived from it."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
