"""Memory documents: programs write them, staff read them with all versions, and remove them."""

import json
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.db.models.functions import Left, Length
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memories_app.memory_document_format.names import ACCEPTED, DEPRECATED, STATUSES, SUPERSEDED
from memories_app.memory_documents.document_rows import documents_remove, envelope_of
from memories_app.models import MemoryDocument
from memoryproject.foundation.admin_kit import display, list_filters, staff_admin, staff_pages
from memoryproject.foundation.audit.audit_events import staff_actor

SHOWN_VERSIONS = 20
MAX_VERSION_LENGTH = 20_000


STATUS_LABELS = {
    ACCEPTED: gettext_lazy("accepted"),
    SUPERSEDED: gettext_lazy("superseded"),
    DEPRECATED: gettext_lazy("deprecated"),
}


ARCHIVED_FILTER = list_filters.choice_filter(
    "archived",
    gettext_lazy("archive"),
    {
        "": (gettext_lazy("Not archived"), Q(archived_at__isnull=True)),
        "yes": (gettext_lazy("Archived"), Q(archived_at__isnull=False)),
        "all": (gettext_lazy("All"), Q()),
    },
)
# Of decisions: a handoff's percentage would be no useful choice.
DECISION_FILTER = list_filters.value_filter(
    "decision",
    gettext_lazy("decision"),
    [(status, STATUS_LABELS.get(status, status)) for status in STATUSES],
    lookup="status",
)


@admin.register(MemoryDocument)
class MemoryDocumentAdmin(staff_admin.ReadOnlyAdmin):
    list_display = ("name", "category", "shown_state", "version", "changed", "archived_at")
    list_filter = ("category", ARCHIVED_FILTER, DECISION_FILTER, "changed")
    search_fields = ("name", "summary", "session_id", "id")
    actions = ("remove_selected",)
    fieldsets = staff_admin.sections(
        (None, "category name shown_state shown_content"),
        (gettext_lazy("Envelope"), "summary created changed session_id archived_at"),
        (gettext_lazy("History"), "shown_versions"),
    )

    @admin.display(description=gettext_lazy("state"), ordering="status")
    def shown_state(self, document: MemoryDocument) -> str:
        tone = {ACCEPTED: "good", SUPERSEDED: "bad", DEPRECATED: "bad"}.get(document.status, "")
        return display.shown_mark(
            str(STATUS_LABELS.get(document.status, document.status or "–")), tone
        )

    @admin.display(description=gettext_lazy("content"))
    def shown_content(self, document: MemoryDocument) -> str:
        content = envelope_of(document).content
        if not content:
            return "–"
        return display.shown_table(
            (_("field"), _("says")), ((key, _shown(value)) for key, value in content.items())
        )

    @admin.display(description=gettext_lazy("versions, the newest first"))
    def shown_versions(self, document: MemoryDocument) -> str:
        versions = (
            document.versions.order_by("-number")
            .annotate(size=Length("body"), beginning=Left("body", MAX_VERSION_LENGTH))
            .defer("body")[:SHOWN_VERSIONS]
        )
        rows = (
            (
                str(version.number),
                display.moment_shown(version.saved_at),
                f"{version.saved_by_kind} {version.saved_by_name}".strip(),
                _shown_version(version.beginning, version.size),
            )
            for version in versions
        )
        return display.shown_table((_("no."), _("saved"), _("by"), _("document")), rows)

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request)

    @admin.action(description=gettext_lazy("Remove with all versions"), permissions=["remove"])
    def remove_selected(
        self, request: HttpRequest, queryset: QuerySet[MemoryDocument]
    ) -> HttpResponse | None:
        """Ask for confirmation before removing."""
        chosen = list(queryset.values_list("pk", flat=True))
        if not staff_pages.is_confirmed(request):
            consequence = ngettext(
                "%(count)d memory document will be removed with all versions.",
                "%(count)d memory documents will be removed with all versions.",
                len(chosen),
            )
            return staff_pages.confirmation(
                request,
                queryset,
                chosen=chosen,
                action="remove_selected",
                title=_("Remove memory documents"),
                button=_("Remove"),
                consequence=consequence % {"count": len(chosen)},
            )
        count = documents_remove(ids=chosen, actor=staff_actor(request))
        text = ngettext("%(count)d removed.", "%(count)d removed.", count) % {"count": count}
        messages.success(request, text)
        return None


def _shown(value: Any) -> SafeString:
    """Render texts as texts, each in its own direction, and other values as JSON."""
    if isinstance(value, str):
        return display.shown_text(value)
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return format_html_join("", "{}", ((display.shown_text(f"• {each}"),) for each in value))
    return display.shown_json(value)


def _shown_version(beginning: str, size: int) -> SafeString:
    if size > len(beginning):
        text = _("%(beginning)s… (%(size)d characters)") % {"beginning": beginning, "size": size}
        return display.shown_text(text)
    return display.shown_json(json.loads(beginning))
