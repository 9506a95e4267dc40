"""Import of opening hours, prices, questions and facts from a table, with a preview."""

import logging
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import get_language, gettext as _, gettext_lazy

from memories_app.errors import no_vector_words
from memories_app.models import Visibility
from memories_app.review.presentation import VISIBILITIES as AUDIENCES
from memoryproject.foundation.admin_kit.list_csv import CSV_TYPE, as_download
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.memories.tables import columns, plan as plans

logger = logging.getLogger(__name__)

LISTED = 100
STATUSES = {
    plans.NEW: gettext_lazy("new"),
    plans.REPLACES: gettext_lazy("replaces"),
    plans.ASKS: gettext_lazy("new; you will be asked about a pinned one"),
    plans.SAME: gettext_lazy("known already"),
    plans.INVALID: gettext_lazy("can't be used"),
}
_SAVED = gettext_lazy("As CSV, with commas, semicolons or tabs; at most %(rows)s rows.")


class TableForm(forms.Form):
    """The table is in ``text`` once it has been read: a file need not be chosen again."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.txt,text/csv"}),
        required=False,
        error_messages={"empty": gettext_lazy("This file is empty.")},
    )
    text = forms.CharField(
        label=gettext_lazy("Or paste the cells of your spreadsheet"),
        widget=forms.Textarea(attrs={"rows": 6, "dir": "auto", "spellcheck": "false"}),
        required=False,
        strip=False,
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What it holds"),
        choices=[("", gettext_lazy("as its headers say")), *columns.KINDS.items()],
        required=False,
    )
    visibility = forms.ChoiceField(
        label=gettext_lazy("Visible to"),
        choices=[
            (str(Visibility.PUBLIC), gettext_lazy("Everyone")),
            (str(Visibility.OWNER), gettext_lazy("Owner only")),
        ],
        initial=str(Visibility.PUBLIC),
    )
    currency = forms.ChoiceField(
        label=gettext_lazy("Currency, where the table names none"),
        choices=[("", gettext_lazy("none")), *((sign, sign) for sign in plans.CURRENCIES)],
        required=False,
    )

    def clean(self) -> dict[str, Any]:
        """Take the text from the file, where one was chosen."""
        cleaned: dict[str, Any] = super().clean() or {}
        file = cleaned.get("file")
        try:
            if file is not None and self.data.get("do") != "store":
                cleaned["text"] = columns.text_of(file.read(columns.MAX_BYTES + 1))
            elif len(cleaned.get("text", "")) > columns.MAX_BYTES:
                columns.text_of(b" " * (columns.MAX_BYTES + 1))
        except columns.TableError as error:
            raise forms.ValidationError(str(error)) from error
        if not cleaned.get("text", "").strip() and not self.errors:
            raise forms.ValidationError(_("Choose a file, or paste the cells of a table."))
        return cleaned


class TableImportPages(ReadOnlyAdmin):
    """The part of the page of memories that imports tables. Nothing is stored by the preview."""

    own_pages: ClassVar[Any] = {
        "table": OwnPage("table/", "table_view"),
        "table_example": OwnPage("table/<str:kind>.csv", "example_view"),
    }

    def _require_importer(self, request: HttpRequest) -> None:
        # The preview shows what is remembered already.
        if not (self.has_add_permission(request) and self.has_view_permission(request)):
            raise PermissionDenied

    def example_view(self, request: HttpRequest, kind: str) -> HttpResponse:
        """Return a table to fill in, in the reader's language."""
        self._require_importer(request)
        if kind not in columns.KINDS:
            raise Http404("There is no such kind of table.")
        table = columns.example_table(kind, hebrew=get_language() == "he")
        return as_download(HttpResponse(table, content_type=CSV_TYPE), f"{kind}.csv")

    def table_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, the preview of a table, or the result of its import."""
        self._require_importer(request)
        if request.method != "POST":
            return self._table_page(request, TableForm())
        form = TableForm(request.POST, request.FILES)
        if not form.is_valid():
            return self._table_page(request, form, status=400)
        cleaned = form.cleaned_data
        shown = TableForm(initial={name: cleaned[name] for name in cleaned if name != "file"})
        choices = plans.Choices(cleaned["kind"], cleaned["visibility"], cleaned["currency"])
        now = timezone.localtime(timezone.now(), ZoneInfo(settings.BUSINESS_TIME_ZONE))
        try:
            plan = plans.table_plan(cleaned["text"], choices, now=now)
        except columns.TableError as error:
            return self._table_page(request, shown, error=str(error), status=400)
        if request.POST.get("do") != "store":
            return self._table_page(request, shown, plan)
        return self._store(request, shown, plan)

    def _store(self, request: HttpRequest, shown: TableForm, plan: plans.Plan) -> HttpResponse:
        """Store the ticked sentences; where nothing can be stored, show the preview again."""
        ticked = set(request.POST.getlist("row"))
        try:
            done = plans.table_import(
                plan=plan, embedder=embedder(), actor=staff_actor(request), chosen=ticked
            )
        except plans.ChangedSincePreviewError:
            text = _("The table or the memories changed since this preview: look again.")
            messages.warning(request, text)
            return self._table_page(request, shown, plan, status=409)
        except EmbedderError as error:
            messages.error(request, no_vector_words(error))
        except DatabaseError:
            logger.exception("An import of a table broke off.")
            text = _("The database refused. Nothing was stored: try again.")
            messages.error(request, text)
        else:
            return self._result_page(request, done)
        return self._table_page(request, shown, plan, ticked=ticked, status=503)

    def _table_page(
        self,
        request: HttpRequest,
        form: TableForm,
        plan: plans.Plan | None = None,
        *,
        ticked: set[str] | None = None,
        error: str = "",
        status: int = 200,
    ) -> HttpResponse:
        """Show the form. ``ticked``: the chosen marks; None: all."""
        rows = plan.rows if plan else ()
        context = {
            "form": form,
            "error": error,
            "plan": plan,
            "kind": columns.KINDS[plan.kind] if plan else "",
            "unused": ", ".join(plan.unused) if plan else "",
            "rows": [
                {
                    "number": number,
                    "planned": row,
                    "says": STATUSES[row.status],
                    "ticked": row.is_stored and (ticked is None or row.mark in ticked),
                }
                for number, row in enumerate(rows, start=1)
            ],
            "storable": sum(row.is_stored for row in rows),
            "audience": AUDIENCES[plan.choices.visibility] if plan else "",
            "counts": [(str(STATUSES[each]), count) for each, count in plan.counts.items() if count]
            if plan
            else [],
            "kinds": columns.KINDS.items(),
            "saved_as": str(_SAVED) % {"rows": columns.MAX_ROWS},
        }
        template = "admin/memories_app/memory/table.html"
        return staff_page(
            request, template, _("Import a table"), context, of=self.model, status=status
        )

    def _result_page(self, request: HttpRequest, done: plans.TableImported) -> HttpResponse:
        context = {
            "done": done,
            "listed": [*done.replaced, *done.added][:LISTED],
            "more": max(len(done.replaced) + len(done.added) - LISTED, 0),
        }
        return staff_page(
            request,
            "admin/memories_app/memory/table_done.html",
            _("Import a table"),
            context,
            of=self.model,
        )
