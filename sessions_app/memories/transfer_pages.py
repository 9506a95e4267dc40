"""Export and import of memories in the admin, as lines of JSON."""

import logging
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _, gettext_lazy

from memories_app.models import Memory
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin, refuse_nul
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.errors.stored_errors import error_text, translate_error
from memoryproject.foundation.integrations.embedders.base import EmbedderError
from sessions_app.embedding.facade import embedder
from sessions_app.memories.presentation import EXPORT_NAMES, Lines, lines_answer
from sessions_app.memories.transfer import ImportReport, memories_export, memories_import

logger = logging.getLogger(__name__)

EXPORT = "memories_app.export_memory"
# A browser waits for the response; manage.py memories_import accepts more.
MAX_BYTES = 16 * 1024 * 1024
SHOWN_ERRORS = 200


class ImportForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("File"),
        help_text=gettext_lazy("As “Export” writes it: a memory in each line, as JSON (NDJSON)."),
        widget=forms.FileInput(attrs={"accept": ".ndjson,.jsonl,.json,application/x-ndjson"}),
        error_messages={"empty": gettext_lazy("This file is empty.")},
    )
    vectors = forms.BooleanField(
        label=gettext_lazy("Make the vectors that are missing"),
        help_text=gettext_lazy("Without a vector a memory is found by its words only."),
        required=False,
        initial=True,
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > MAX_BYTES:
            text = _(
                "The file is larger than %(most)s: send it in parts, or use "
                "“manage.py memories_import”."
            )
            raise forms.ValidationError(text % {"most": filesizeformat(MAX_BYTES)})
        return file


class MemoryTransfer(ReadOnlyAdmin):
    """The part of the page of memories that exports and imports."""

    own_pages: ClassVar[Any] = {
        "export": OwnPage("export/", "export_view", "POST"),
        "import": OwnPage("import/", "import_view"),
    }

    def has_export_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(EXPORT) and self.has_view_permission(request))

    @admin.action(description=gettext_lazy("Export"), permissions=["export"])
    def export_selected(self, request: HttpRequest, queryset: QuerySet[Memory]) -> Any:
        return self._export(request, queryset)

    def export_view(self, request: HttpRequest) -> HttpResponse:
        """Export the memories that the list's search and filters match, given in the address."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        refuse_nul(request)
        found = self.get_changelist_instance(request).queryset
        return self._export(request, found)

    def _export(self, request: HttpRequest, queryset: QuerySet[Memory]) -> Any:
        # Without the list's order and columns: an export has its own.
        chosen = Memory.objects.filter(pk__in=queryset.order_by().values("pk"))
        redacted = "redact" in request.POST
        lines = memories_export(memories=chosen, actor=staff_actor(request), redacted=redacted)
        return lines_answer(lines, name=EXPORT_NAMES[redacted])

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form, and after an import the result of each line."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST or None, request.FILES or None)
        report = None
        if request.method == "POST" and form.is_valid():
            report = self._import(request, form.cleaned_data["file"], form.cleaned_data["vectors"])
        context = {
            "form": form,
            "report": report,
            "errors": report.errors[:SHOWN_ERRORS] if report else [],
            "more_errors": _left_out(report) if report else 0,
        }
        status = 400 if request.method == "POST" and report is None else 200
        return staff_page(
            request,
            "admin/memories_app/memory/import.html",
            _("Import memories"),
            context,
            of=self.model,
            status=status,
        )

    def _import(self, request: HttpRequest, file: Any, vectors: bool) -> ImportReport | None:
        """Import the file; None if it was interrupted. Earlier lines stay; a retry is safe."""
        try:
            return memories_import(
                lines=Lines(file.file, ""),
                embedder=embedder() if vectors else None,
                actor=staff_actor(request),
            )
        except EmbedderError as error:
            text = _(
                "No vectors can be made just now: %(reason)s What was read before stays. Import "
                "the file again later, or without vectors."
            )
            reason = translate_error(error_text(error))
            messages.error(request, text % {"reason": reason})
        except DatabaseError:
            logger.exception("An import of memories broke off.")
            text = _("The database refused. What was read before stays: import the file again.")
            messages.error(request, text)
        return None


def _left_out(report: ImportReport) -> int:
    return max(len(report.errors) - SHOWN_ERRORS, 0) + report.errors_left_out
