"""The audit log in the admin: read, searched and verified."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from memoryproject.audit.models import AuditEvent
from memoryproject.audit.pseudonyms import pseudonyms_of
from memoryproject.audit.verify.report import flaws
from memoryproject.audit.verify.service import audit_verify
from memoryproject.audit.wiring import audit_key, log_path
from memoryproject.lib.admin_display import shown_json, shown_state
from memoryproject.lib.bounded_pages import BoundedPaginator
from memoryproject.lib.read_only_admin import ReadOnlyAdmin

ACTOR_KINDS = ("staff", "api", "person", "command", "system")


class ActionFilter(admin.SimpleListFilter):
    """The actions that are in the log."""

    title = "action"
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in actions_there()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent]
    ) -> QuerySet[AuditEvent]:
        return queryset.filter(action=self.value()) if self.value() else queryset


class ActorKindFilter(admin.SimpleListFilter):
    title = "who"
    parameter_name = "actor_kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind, kind) for kind in ACTOR_KINDS]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent]
    ) -> QuerySet[AuditEvent]:
        return queryset.filter(actor_kind=self.value()) if self.value() else queryset


def actions_there() -> list[str]:
    """Each action once: from one to the next in the index, however many rows each has."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE found AS ("
            " SELECT min(action) AS action FROM audit_auditevent UNION ALL"
            " SELECT (SELECT min(event.action) FROM audit_auditevent event"
            " WHERE event.action > found.action) FROM found WHERE found.action IS NOT NULL)"
            " SELECT action FROM found WHERE action IS NOT NULL ORDER BY action"
        )
        return [action for (action,) in cursor.fetchall()]


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Whose pseudonym it is shows only to who searches for a chat's id."""

    list_display = ("at", "action", "shown_actor", "shown_object", "chat", "shown_seq")
    list_filter = (ActionFilter, ActorKindFilter, "at")
    search_fields = ("object_id",)
    search_help_text = (
        "The whole id of a memory, message or session, a user name, a pseudonym, or a chat's id, "
        "which finds all of its person."
    )
    paginator = BoundedPaginator
    # Counts beside the filters would read every row.
    show_facets = admin.ShowFacets.NEVER
    fieldsets = (
        (None, {"fields": ("at", "action", "actor_kind", "actor", "chat")}),
        ("To what", {"fields": ("object_type", "object_id", "content_hash", "shown_details")}),
        ("In the chain", {"fields": ("shown_seq", "seal", "id")}),
    )
    readonly_fields = ("shown_details", "shown_seq", "seal", "id")
    change_list_template = "admin/audit/auditevent/change_list.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEvent], search_term: str
    ) -> tuple[QuerySet[AuditEvent], bool]:
        """Whole values only: each is found by an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        fits = Q(object_id=term) | Q(actor=term) | Q(chat=term)
        if names := _pseudonyms(term):
            fits |= Q(chat__in=names) | Q(actor__in=names)
        return queryset.filter(fits), False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.verify_view)
        return [path("verify/", view, name="audit_auditevent_verify"), *super().get_urls()]

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """A button; pressed, it verifies and shows the report."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Verify the audit log",
        }
        if request.method == "POST":
            report = audit_verify(key=audit_key(), log_path=log_path())
            level = messages.SUCCESS if report.verified else messages.ERROR
            self.message_user(request, report.told(), level)
            context |= {"report": report, "flaws": list(flaws(report))}
        return TemplateResponse(request, "admin/audit/auditevent/verify.html", context)

    @admin.display(description="by", ordering="actor")
    def shown_actor(self, event: AuditEvent) -> str:
        return f"{event.actor_kind} {event.actor}".strip()

    @admin.display(description="to what")
    def shown_object(self, event: AuditEvent) -> str:
        return f"{event.object_type} {event.object_id}".strip() or "–"

    @admin.display(description="sealed", ordering="seq")
    def shown_seq(self, event: AuditEvent) -> str:
        if event.seq is None:
            return shown_state("waits")
        return shown_state(f"no. {event.seq}", good=[f"no. {event.seq}"])

    @admin.display(description="details")
    def shown_details(self, event: AuditEvent) -> str:
        return shown_json(event.details)


def _pseudonyms(term: str) -> list[str]:
    try:
        return pseudonyms_of(key=audit_key(), chat_id=UUID(term))
    except ValueError:
        return []
