"""A base class of admin pages for records that services write and staff only read."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from memoryproject.foundation.admin_kit.staff_admin import StaffAdmin


class ReadOnlyAdmin(StaffAdmin):
    """Doesn't allow adding, changing or deleting.

    An edit would separate a record from the data derived from it.
    """

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
