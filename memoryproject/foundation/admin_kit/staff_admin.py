"""What all pages of the admin are built on: unfold's classes, with our defaults."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from django.utils.translation import gettext
from unfold.admin import ModelAdmin, StackedInline, TabularInline

from memoryproject.foundation.admin_kit.bounded_pages import BoundedPaginator
from memoryproject.foundation.admin_kit.stamped_form import conflict_checked


def refuse_nul(request: HttpRequest) -> None:
    """A NUL in a filter is nobody's: the database can't even be asked for it. Raises
    BadRequest."""
    values = (value for name in request.GET if name != "q" for value in request.GET.getlist(name))
    if any("\x00" in value for value in values):
        raise BadRequest("An address holds no NUL.")


class StaffAdmin(ModelAdmin):  # type: ignore[misc]
    """A list never counts a whole table: not for its pages, nor beside its filters, nor to say
    how many rows it leaves out. A form that changes something undoes nothing unseen."""

    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    warn_unsaved_form = True
    # So many rows an action is done with where all of a list are chosen: each is done by itself
    # while somebody waits, and a page that asks once more posts them all.
    most_at_once = 900
    # Actions that aren't, or that have a limit of their own.
    unbounded_actions: Collection[str] = ()
    # Of the list, where the menu calls it otherwise than its rows.
    list_title: Any = ""
    list_filter_submit = False
    change_form_before_template = "admin/stamp.html"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None and self.has_change_permission(request, obj):
            kwargs["form"] = conflict_checked(kwargs.get("form") or self.form)
        return super().get_form(request, obj, change, **kwargs)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # Pages are shown without it (memoryproject.staff_site.middleware); what an action is done
        # with isn't chosen by half a filter.
        refuse_nul(request)
        # Django's own title would ask to select something; most lists are read.
        title = self.list_title or capfirst(str(self.opts.verbose_name_plural))
        context = {"title": title, **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, context)
        return answer

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        base: type[ChangeList] = super().get_changelist(request, **kwargs)

        class FoundOnce(base):  # type: ignore[misc,valid-type]
            """What was looked for to be counted isn't looked for again to be shown."""

            def get_results(self, request: HttpRequest) -> None:
                super().get_results(request)
                if isinstance(self.paginator, BoundedPaginator):
                    rows = self.paginator.only_page
                    if rows is not None:
                        self.result_list: Any = rows

        return FoundOnce

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Django lets years through that no date can hold."""
        try:
            return super().get_changelist_instance(request)
        except OverflowError as error:
            raise IncorrectLookupParameters from error

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes along is counted and not listed: it may be thousands of rows."""
        gone, counts, missing, protected = super().get_deleted_objects(objs, request)
        return [each for each in gone if not isinstance(each, list)], counts, missing, protected

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Django asks the database for whatever was posted as a row's key."""
        posted = request.POST.copy()
        chosen = posted.getlist(ACTION_CHECKBOX_NAME)
        posted.setlist(ACTION_CHECKBOX_NAME, [key for key in chosen if self._may_be_key(key)])
        request.POST = posted  # type: ignore[assignment]
        bounded = posted.get("action") not in self.unbounded_actions
        if bounded and posted.get("select_across") == "1" and self._is_long(queryset):
            text = gettext("That is done with at most {most} at once. Narrow the list first.")
            messages.error(request, text.format(most=self.most_at_once))
            return None
        return super().response_action(request, queryset)

    def _is_long(self, queryset: QuerySet[Any]) -> bool:
        """The number that the list shows is where it stopped to count."""
        return bool(queryset.order_by()[self.most_at_once :][:1].exists())

    def _may_be_key(self, key: str) -> bool:
        try:
            self.opts.pk.run_validators(self.opts.pk.to_python(key))
        except ValidationError:
            return False
        return "\x00" not in key


class StaffTabularInline(TabularInline):  # type: ignore[misc]
    extra = 0


class StaffStackedInline(StackedInline):  # type: ignore[misc]
    extra = 0
