"""Base classes of all admin pages: unfold's classes, with our defaults."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin import ShowFacets, helpers
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import flatten, flatten_fieldsets
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils.text import capfirst
from django.utils.translation import gettext
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminForm, Fieldline

from memoryproject.foundation.admin_kit.list_csv import (
    PARAMETER as CSV,
    BoundedPaginator,
    csv_download,
    list_csv,
)
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, page_paths
from memoryproject.foundation.admin_kit.stamped_form import conflict_checked

# Unfold sets them when a form is opened by its own changeform_view, which not each of our forms
# uses: until another form was opened in the same process, such a form looked different.
helpers.AdminForm = AdminForm  # type: ignore[misc]
helpers.Fieldline = Fieldline  # type: ignore[misc]


# Scripts that fill a slug while its title is typed, 173 kB. Django adds them to each page of each
# model; no form here has a slug.
SLUG_SCRIPTS = re.compile(r"/(xregexp(\.min)?|urlify|prepopulate)\.js$")


def sections(*parts: tuple[Any, ...]) -> tuple[tuple[Any, dict[str, Any]], ...]:
    """Return fieldsets, each of a heading, the names of its fields, and what is special of it."""
    return tuple(
        (title, {"fields": tuple(names.split()), **dict(*looks)}) for title, names, *looks in parts
    )


def refuse_nul(request: HttpRequest) -> None:
    """Refuse a NUL in a filter, which PostgreSQL can't compare with. Raises BadRequest."""
    values = (value for name in request.GET if name != "q" for value in request.GET.getlist(name))
    if any("\x00" in value for value in values):
        raise BadRequest("An address holds no NUL.")


class StaffAdmin(ModelAdmin):  # type: ignore[misc]
    """An admin whose lists never count a whole table, and whose forms overwrite nothing unseen.

    Nothing is counted for the pages, next to filters, or for the number of rows left out.
    """

    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    warn_unsaved_form = True
    # The limit of rows for an action on all rows of a list. Each row is processed by itself while
    # the user waits, and a confirmation page posts them all.
    most_at_once = 900
    # Actions without this limit, or with a limit of their own.
    unbounded_actions: Collection[str] = ()
    # The list's title, if the menu doesn't use the model's name.
    list_title: Any = ""
    # The columns of a row's first line on a narrow screen (list_rows.py); None: the first ones
    # that fit there.
    row_title: str | None = None
    row_time: str | None = None
    list_filter_submit = False
    change_form_before_template = "admin/stamp.html"
    # Whether the list can be downloaded as CSV, and what the file has for some of its columns. ""
    # leaves a column out that only holds buttons.
    has_csv = True
    csv_columns: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # Further pages below the list's address, by the end of their URL names. Those of the base
    # classes are added.
    own_pages: ClassVar[Mapping[str, OwnPage]] = MappingProxyType({})

    @property
    def media(self) -> Media:
        media = super().media
        scripts = [str(each) for each in media._js if not SLUG_SCRIPTS.search(str(each))]
        return Media(css=media._css, js=scripts)

    def get_urls(self) -> list[URLPattern]:
        declared = [vars(each).get("own_pages", {}) for each in type(self).__mro__]
        prefix = f"{self.opts.app_label}_{self.opts.model_name}_"
        own = [page_paths(self.admin_site, pages, of=self, prefix=prefix) for pages in declared]
        return [*chain.from_iterable(own), *super().get_urls()]

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the list's templates need besides Django's context."""
        return {}

    def complete_rows(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        """Give the rows of a page what is read for all of them at once; a hook."""

    def row_name(self, request: HttpRequest, row: Any) -> str:
        """Return what a row's page is called, instead of the row's text; a hook."""
        return ""

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        if row is not None and (name := self.row_name(request, row)):
            context.update({"crumb": name, "title": name, "subtitle": None})
        return super().render_change_form(request, context, *args, **kwargs)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> Any:
        context = {"list_title": self.list_title, **(extra_context or {})}
        return super().delete_view(request, object_id, context)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None and self.has_change_permission(request, obj):
            kwargs["form"] = conflict_checked(kwargs.get("form") or self.form)
        form = super().get_form(request, obj, change, **kwargs)
        # For whoever may only read, Django names a field of the form alone by its attribute.
        form._meta.labels = {name: each.label for name, each in form.base_fields.items()}
        return form

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # Pages are shown without the NUL (memoryproject.staff_site.middleware). An action must not
        # use half a filter to choose its rows.
        refuse_nul(request)
        # Django's own title would ask to select something; most lists are only read.
        title = self.list_title or capfirst(str(self.opts.verbose_name_plural))
        if self.has_csv and CSV in request.GET and request.method == "GET":
            return self._list_csv(request)
        context = {"title": title, **self.list_context(request), **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, context)
        return answer

    def _list_csv(self, request: HttpRequest) -> HttpResponse:
        """Return the filtered list as a file. The audit log has that it was taken."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        filters = request.GET.copy()
        del filters[CSV]
        request.GET = filters  # type: ignore[assignment]
        try:
            changes = self.get_changelist_instance(request)
        except IncorrectLookupParameters:
            raise BadRequest("These filters make no sense.") from None
        content, rows = list_csv(request, changes, self.csv_columns)
        self.admin_site.record_list_export(request, self.opts.model_name, rows)
        return csv_download(str(self.opts.model_name), content)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        base: type[ChangeList] = super().get_changelist(request, **kwargs)

        class FoundOnce(base):  # type: ignore[misc,valid-type]
            """Doesn't search again for the rows of the page after searching to count them."""

            def get_results(self, request: HttpRequest) -> None:
                super().get_results(request)
                if isinstance(self.paginator, BoundedPaginator):
                    rows = self.paginator.only_page
                    if rows is not None:
                        self.result_list: Any = rows
                    elif not self.multi_page:
                        # A page as long as all that is counted: Django would read the whole table.
                        self.result_list = self.queryset[: self.list_per_page]
                self.model_admin.complete_rows(request, self.result_list)

        return FoundOnce

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Refuse years that no date can hold, which Django lets through."""
        try:
            return super().get_changelist_instance(request)
        except OverflowError as error:
            raise IncorrectLookupParameters from error

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Count the related objects that would be deleted instead of listing thousands of rows."""
        gone, counts, missing, protected = super().get_deleted_objects(objs, request)
        return [each for each in gone if not isinstance(each, list)], counts, missing, protected

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Drop posted row keys that can't be keys, with which Django would query the database."""
        posted = request.POST.copy()
        chosen = posted.getlist(ACTION_CHECKBOX_NAME)
        posted.setlist(ACTION_CHECKBOX_NAME, [key for key in chosen if self._may_be_key(key)])
        request.POST = posted  # type: ignore[assignment]
        bounded = posted.get("action") not in self.unbounded_actions
        # The count that the list shows may be the limit, not the real number.
        is_long = queryset.order_by()[self.most_at_once :][:1].exists
        if bounded and posted.get("select_across") == "1" and is_long():
            text = gettext("That is done with at most {most} at once. Narrow the list first.")
            messages.error(request, text.format(most=self.most_at_once))
            return None
        return super().response_action(request, queryset)

    def _may_be_key(self, key: str) -> bool:
        try:
            self.opts.pk.run_validators(self.opts.pk.to_python(key))
        except ValidationError:
            return False
        return "\x00" not in key


class OneRowAdmin(StaffAdmin):
    """The form of a table's only row, which is made if it is missing. The list redirects to it."""

    has_csv = False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row, _made = self.model._default_manager.get_or_create(pk=1)
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", row.pk)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class StaffTabularInline(TabularInline):  # type: ignore[misc]
    extra = 0


# A base class of admin pages for records that services write and staff only read.


class ReadOnlyAdmin(StaffAdmin):
    """Doesn't allow adding, changing or deleting.

    An edit would separate a record from the data derived from it.

    ``allowed``: which of add and change users with the right may do nevertheless. ``editable``: the
    fields that a change is limited to.

    ``find_rows``: returns the rows of a list that a search finds. Without it Django searches.
    """

    allowed: ClassVar[Collection[str]] = ()
    editable: ClassVar[Sequence[str]] = ()
    find_rows: ClassVar[Callable[..., QuerySet[Any]] | None] = None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if self.find_rows is None:
            return super().get_search_results(request, queryset, search_term)
        return self.find_rows(queryset, search_term), False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return what the row's page shows, except what can be edited there."""
        if obj is None and "add" in self.allowed:
            return ()
        declared = flatten_fieldsets(self.fieldsets or ()) or flatten(self.fields or ())
        shown = [str(name) for name in declared if name not in self.editable]
        return shown or super().get_readonly_fields(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return "add" in self.allowed and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "change" in self.allowed and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
