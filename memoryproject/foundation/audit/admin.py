"""The audit log in the admin: read, filter, search, verify and export."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from memoryproject.foundation.admin_kit.display import shown_json, shown_state
from memoryproject.foundation.admin_kit.list_csv import as_download
from memoryproject.foundation.admin_kit.staff_admin import ReadOnlyAdmin
from memoryproject.foundation.audit.audit_events import (
    audit_key,
    audit_record,
    pseudonyms_of,
    staff_actor,
)
from memoryproject.foundation.audit.audit_logfile import Fields, canonical, line_of
from memoryproject.foundation.audit.chain import signed_rows
from memoryproject.foundation.audit.filters import (
    ACTOR_KINDS,
    ActionFilter,
    ActorFilter,
    ActorKindFilter,
    ObjectTypeFilter,
    PeriodFilter,
)
from memoryproject.foundation.audit.findings import shown_findings, shown_result
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.verification import chain_state, verification_ask
from memoryproject.foundation.audit.words import action_shown, object_shown
from memoryproject.foundation.text.csv_lines import CSV_TYPE, csv_lines
from memoryproject.foundation.text.uuids import uuid_or_none

EXPORT = "audit.export_auditevent"


# Exports: as the lines of the log file, or as a table for a spreadsheet.


def as_json_lines(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield each event as its line in the log file, byte for byte.

    An event that isn't sealed yet has no number and no seal.
    """
    for fields, seal in signed_rows(events):
        yield line_of(fields, seal)


def as_csv(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield the events as CSV with a row of titles."""
    rows = ([*canonical(fields), seal] for fields, seal in signed_rows(events))
    return csv_lines((*Fields._fields, "seal"), rows)


FORMATS: dict[str, tuple[str, Callable[[QuerySet[AuditEvent]], Iterator[bytes]]]] = {
    "jsonl": ("application/x-ndjson", as_json_lines),
    "csv": (CSV_TYPE, as_csv),
}


def line_shown(event: AuditEvent) -> dict[str, Any]:
    """Return all fields of an event's line, for display."""
    ((fields, seal),) = signed_rows(AuditEvent.objects.filter(pk=event.pk))
    line: dict[str, Any] = json.loads(line_of(fields, seal))
    return line


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """The list of events. It links a pseudonym to a chat only in a search for that chat's id."""

    list_title = gettext_lazy("Audit log")
    # It has exports of its own, which hold the seals.
    has_csv = False
    list_display = ("at", "shown_action", "shown_actor", "shown_object", "shown_chat", "shown_seq")
    list_filter = (PeriodFilter, ActionFilter, ActorKindFilter, ActorFilter, ObjectTypeFilter)
    search_fields = ("object_id",)
    search_help_text = gettext_lazy(
        "The whole id of a memory, message or session, a user name, a pseudonym, or a chat's id, "
        "which finds all of its person."
    )
    fieldsets = (
        (None, {"fields": ("at", "shown_action", "shown_code", "shown_actor", "shown_chat")}),
        (
            gettext_lazy("Object"),
            {"fields": ("shown_object_type", "object_id", "content_hash", "shown_details")},
        ),
        (gettext_lazy("Integrity"), {"fields": ("shown_seq", "seal", "id", "shown_line")}),
    )
    readonly_fields = (
        "shown_action",
        "shown_code",
        "shown_object_type",
        "shown_actor",
        "shown_chat",
        "shown_details",
        "shown_seq",
        "shown_line",
        "seal",
        "id",
    )
    change_list_template = "admin/audit/auditevent/change_list.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent], search_term: str
    ) -> tuple[QuerySet[AuditEvent], bool]:
        """Search for whole values only: each is found by an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        fits = Q(object_id=term) | Q(actor=term) | Q(chat=term)
        if names := _pseudonyms(term):
            fits |= Q(chat__in=names) | Q(actor__in=names)
        return queryset.filter(fits), False

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = [
            path("verify/", wrap(self.verify_view), name="audit_auditevent_verify"),
            path("export/", wrap(require_POST(self.export_view)), name="audit_auditevent_export"),
        ]
        return [*own, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list with the chain's state at the top."""
        query = request.GET.urlencode()
        context = {
            "state": _state() if self.has_view_permission(request) else None,
            "may_export": request.user.has_perm(EXPORT),
            "export_address": f"{reverse('admin:audit_auditevent_export')}?{query}",
        }
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Call the event by what was done, as the list does."""
        event = kwargs.get("obj")
        if event is not None:
            words = self.shown_action(event)
            context.update({"crumb": words, "subtitle": words})
        return super().render_change_form(request, context, *args, **kwargs)

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Show the chain's state and the last result; a POST lets a worker verify."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            verification_ask(asked_by=request.user.get_username(), now=timezone.now())
            return redirect("admin:audit_auditevent_verify")
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "list_title": self.list_title,
            "title": _("Verify the audit log"),
            "state": _state(),
        }
        return TemplateResponse(request, "admin/audit/auditevent/verify.html", context)

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Export the filtered list, all pages of it, up to now. The export is an event itself."""
        if not (self.has_view_permission(request) and request.user.has_perm(EXPORT)):
            raise PermissionDenied
        kind = request.POST.get("format", "")
        if kind not in FORMATS:
            raise BadRequest("format: jsonl or csv")
        try:
            events = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            messages.error(request, _("These filters make no sense."))
            return redirect("admin:audit_auditevent_changelist")
        last = AuditEvent.objects.aggregate(last=Max("id"))["last"] or 0
        events = events.filter(id__lte=last)
        audit_record(
            action="audit.export",
            actor=staff_actor(request),
            object_type="audit log",
            details={"format": kind, "events": events.count(), "filters": sorted(request.GET)},
        )
        media_type, rows = FORMATS[kind]
        answer = StreamingHttpResponse(rows(events), content_type=media_type)
        name = f"audit-{timezone.localtime():%Y-%m-%d-%H%M}.{kind}"
        return as_download(answer, name)

    @admin.display(description=gettext_lazy("action"), ordering="action")
    def shown_action(self, event: AuditEvent) -> str:
        return action_shown(event.action)

    @admin.display(description=gettext_lazy("action's code"))
    def shown_code(self, event: AuditEvent) -> str:
        return event.action

    @admin.display(description=gettext_lazy("object"))
    def shown_object_type(self, event: AuditEvent) -> str:
        return object_shown(event.object_type) or "–"

    @admin.display(description=gettext_lazy("by"), ordering="actor")
    def shown_actor(self, event: AuditEvent) -> str:
        return f"{ACTOR_KINDS.get(event.actor_kind, event.actor_kind)} {event.actor}".strip()

    @admin.display(description=gettext_lazy("object"))
    def shown_object(self, event: AuditEvent) -> str:
        return f"{object_shown(event.object_type)} {event.object_id}".strip() or "–"

    @admin.display(description=gettext_lazy("person"), ordering="chat")
    def shown_chat(self, event: AuditEvent) -> str:
        return event.chat or "–"

    @admin.display(description=gettext_lazy("sealed"), ordering="seq")
    def shown_seq(self, event: AuditEvent) -> str:
        if event.seq is None:
            return shown_state(_("waits"))
        shown = _("no. %(number)d") % {"number": event.seq}
        return shown_state(shown, good=[shown])

    @admin.display(description=gettext_lazy("details"))
    def shown_details(self, event: AuditEvent) -> str:
        return shown_json(event.details)

    @admin.display(description=gettext_lazy("raw record"))
    def shown_line(self, event: AuditEvent) -> str:
        """Return the event as its line in the log file."""
        return shown_json(line_shown(event))


def _state() -> dict[str, Any]:
    """Return the chain's state for display."""
    state = chain_state(timezone.now())
    report = state.last.report if state.last else None
    return {
        "chain": state,
        "report": report,
        "sentences": shown_result(report) if report else [],
        "findings": shown_findings(report) if report else [],
    }


def _pseudonyms(term: str) -> list[str]:
    chat_id = uuid_or_none(term)
    return [] if chat_id is None else pseudonyms_of(key=audit_key(), chat_id=chat_id)
