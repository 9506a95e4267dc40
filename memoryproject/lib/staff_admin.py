"""What all pages of the admin are built on: unfold's classes, with our defaults."""

from __future__ import annotations

from django.contrib.admin import ShowFacets
from unfold.admin import ModelAdmin, StackedInline, TabularInline

from memoryproject.lib.bounded_pages import BoundedPaginator


class StaffAdmin(ModelAdmin):  # type: ignore[misc]
    """A list never counts a whole table: not for its pages, nor beside its filters, nor to say
    how many rows it leaves out."""

    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    warn_unsaved_form = True
    list_filter_submit = False


class StaffTabularInline(TabularInline):  # type: ignore[misc]
    extra = 0


class StaffStackedInline(StackedInline):  # type: ignore[misc]
    extra = 0
