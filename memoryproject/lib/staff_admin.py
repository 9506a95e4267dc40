"""What all pages of the admin are built on: unfold's classes, with our defaults."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import ShowFacets
from django.http import HttpRequest
from unfold.admin import ModelAdmin, StackedInline, TabularInline

from memoryproject.lib.bounded_pages import BoundedPaginator
from memoryproject.lib.stamped_form import guarded


class StaffAdmin(ModelAdmin):  # type: ignore[misc]
    """A list never counts a whole table: not for its pages, nor beside its filters, nor to say
    how many rows it leaves out. A form that changes something undoes nothing unseen."""

    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    warn_unsaved_form = True
    list_filter_submit = False
    change_form_before_template = "admin/stamp.html"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None and self.has_change_permission(request, obj):
            kwargs["form"] = guarded(kwargs.get("form") or self.form)
        return super().get_form(request, obj, change, **kwargs)


class StaffTabularInline(TabularInline):  # type: ignore[misc]
    extra = 0


class StaffStackedInline(StackedInline):  # type: ignore[misc]
    extra = 0
