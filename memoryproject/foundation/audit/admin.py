"""The audit log in the admin: read, filter, search, verify and export."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy

from memoryproject.foundation.admin_kit import list_csv, list_filters, staff_admin, staff_pages
from memoryproject.foundation.admin_kit.display import column, shown_json, shown_mark
from memoryproject.foundation.audit import audit_events, audit_logfile, chain, findings
from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.tasks import chain_state, verification_ask
from memoryproject.foundation.text.uuids import uuid_or_none

# The range that fits into the database, and a day more.
FIRST_YEAR, LAST_YEAR = 1970, 9000
Events = QuerySet[AuditEvent]


ACTION_FILTER = list_filters.used_value_filter(
    AuditEvent, "action", gettext_lazy("action"), audit_events.action_shown, most=500
)
OBJECT_FILTER = list_filters.used_value_filter(
    AuditEvent, "object_type", gettext_lazy("object"), audit_events.object_shown, most=500
)
ACTOR_KIND_FILTER = list_filters.value_filter(
    "actor_kind", gettext_lazy("by whom"), audit_events.ACTOR_KINDS.items()
)


class ActorFilter(list_filters.TypedFilter):
    """Filters by the actor's name. A person's pseudonym is also accepted."""

    title = gettext_lazy("name of who did it")
    labels: ClassVar[Any] = {"actor": gettext_lazy("Name")}

    def queryset(self, request: HttpRequest, queryset: Events) -> Events:
        name = self.typed.get("actor", "")
        if "\0" in name:
            return queryset.none()
        return queryset.filter(actor=name) if name else queryset


class PeriodFilter(list_filters.TypedFilter):
    """Filters from one day to another, both included, in the business's time zone."""

    title = gettext_lazy("when")
    labels: ClassVar[Any] = {"from": gettext_lazy("From"), "until": gettext_lazy("Until")}
    kind = "date"

    def problem(self) -> str:
        wrong = [name for name in self.labels if self.typed.get(name) and not self._day(name)]
        return _("That is no day: nothing fits.") if wrong else ""

    def queryset(self, request: HttpRequest, queryset: Events) -> Events:
        if self.problem():
            return queryset.none()
        wanted, zone = Q(), timezone.get_current_timezone()
        if (first := self._day("from")) is not None:
            wanted &= Q(at__gte=list_filters.midnight(first, zone))
        if (last := self._day("until")) is not None:
            wanted &= Q(at__lt=list_filters.midnight(last + timedelta(days=1), zone))
        return queryset.filter(wanted)

    def _day(self, name: str) -> date | None:
        try:
            day = parse_date(self.typed.get(name, ""))
        except ValueError:
            return None
        return day if day is not None and FIRST_YEAR <= day.year <= LAST_YEAR else None

    def quick(self, changelist: Any) -> list[dict[str, Any]]:
        periods = ((1, _("Today")), (7, _("The last 7 days")), (30, _("The last 30 days")))
        found = []
        for days, title in periods:
            first = (timezone.localdate() - timedelta(days=days - 1)).isoformat()
            found.append(
                {
                    "title": title,
                    "query": changelist.get_query_string({"from": first}, remove=["until", "p"]),
                    "selected": self.typed.get("from") == first and not self.typed.get("until"),
                }
            )
        return found


# The list, the page of an event, and the exports.


EXPORT = "audit.export_auditevent"
# Of an id in the list, in characters.
MAX_KEY_LENGTH = 12


# Exports: as the lines of the log file, or as a table for a spreadsheet.


def as_json_lines(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield each event as its line in the log file, byte for byte.

    An event that isn't sealed yet has no number and no seal.
    """
    for fields, seal in chain.signed_rows(events):
        yield audit_logfile.line_of(fields, seal)


def as_csv(events: QuerySet[AuditEvent]) -> Iterator[bytes]:
    """Yield the events as CSV with a row of titles."""
    rows = ([*audit_logfile.canonical(fields), seal] for fields, seal in chain.signed_rows(events))
    return list_csv.csv_lines((*audit_logfile.Fields._fields, "seal"), rows)


FORMATS: dict[str, tuple[str, Callable[[QuerySet[AuditEvent]], Iterator[bytes]]]] = {
    "jsonl": ("application/x-ndjson", as_json_lines),
    "csv": (list_csv.CSV_TYPE, as_csv),
}


def line_shown(event: AuditEvent) -> dict[str, Any]:
    """Return all fields of an event's line, for display."""
    ((fields, seal),) = chain.signed_rows(AuditEvent.objects.filter(pk=event.pk))
    line: dict[str, Any] = json.loads(audit_logfile.line_of(fields, seal))
    return line


def _events_found(
    queryset: QuerySet[AuditEvent], search_term: str, *, by_name: bool
) -> QuerySet[AuditEvent]:
    """Search for whole values only: each is found by an index.

    ``by_name``: also for the person that a name, a number or an address means.
    """
    term = search_term.strip()
    if not term:
        return queryset
    fits = Q(object_id=term) | Q(actor=term) | Q(chat=term)
    names = audit_events.pseudonyms_meant(term) if by_name else []
    if chat_id := uuid_or_none(term):
        names += audit_events.pseudonyms_of(key=audit_events.audit_key(), chat_id=chat_id)
    if names:
        fits |= Q(chat__in=names) | Q(actor__in=names)
    return queryset.filter(fits)


@admin.register(AuditEvent)
class AuditEventAdmin(staff_admin.ReadOnlyAdmin):
    """The list of events, and an event in words.

    Who may see chats reads names and finds people by them; others see pseudonyms.
    """

    list_title = gettext_lazy("Audit log")
    # It has exports of its own, which hold the seals.
    has_csv = False
    list_display = ("at", "shown_action", "shown_actor", "shown_object", "shown_chat", "shown_seq")
    list_filter = (PeriodFilter, ACTION_FILTER, ACTOR_KIND_FILTER, ActorFilter, OBJECT_FILTER)
    search_fields = ("object_id",)
    search_help_text = gettext_lazy(
        "A person's name or number, a user name, or the whole id of a memory, message, session or "
        "chat."
    )
    fieldsets = staff_admin.sections(
        (None, "at shown_actor shown_chat whole_object shown_details"),
        (
            gettext_lazy("Integrity"),
            "shown_code pseudonym content_hash shown_seq seal id shown_line",
            {"classes": ["collapse"]},
        ),
    )
    change_list_template = "admin/audit/auditevent/change_list.html"

    own_pages: ClassVar[Any] = {
        "verify": staff_pages.OwnPage("verify/", "verify_view"),
        "export": staff_pages.OwnPage("export/", "export_view", "POST"),
    }

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return the chain's state, which stands at the top, and the way to export."""
        export = reverse("admin:audit_auditevent_export")
        return {
            "state": _state() if self.has_view_permission(request) else None,
            "may_export": request.user.has_perm(EXPORT),
            "export_address": f"{export}?{request.GET.urlencode()}",
        }

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return _events_found(queryset, search_term, by_name=_sees_names(request)), False

    def complete_rows(self, request: HttpRequest, rows: Iterable[AuditEvent]) -> None:
        """Give each event the people that this reader may know by name."""
        events = list(rows)
        people = {}
        if _sees_names(request):
            people = audit_events.people_shown(
                name for each in events for name in (each.chat, each.actor)
            )
        for each in events:
            each.people = people  # type: ignore[attr-defined]

    def row_name(self, request: HttpRequest, row: Any) -> str:
        self.complete_rows(request, [row])
        return str(self.shown_action(row))

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Show the chain's state and the last result; a POST lets a worker verify."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            verification_ask(asked_by=request.user.get_username(), now=timezone.now())
            return redirect("admin:audit_auditevent_verify")
        context: dict[str, Any] = {"state": _state()}
        return staff_pages.staff_page(
            request,
            "admin/audit/auditevent/verify.html",
            _("Verify the audit log"),
            context,
            of=self.model,
        )

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
        details = {"format": kind, "events": events.count(), "filters": sorted(request.GET)}
        audit_events.staff_record(request, "audit.export", "audit log", **details)
        media_type, rows = FORMATS[kind]
        answer = StreamingHttpResponse(rows(events), content_type=media_type)
        name = f"audit-{timezone.localtime():%Y-%m-%d-%H%M}.{kind}"
        return list_csv.as_download(answer, name)

    @admin.display(description=gettext_lazy("action"), ordering="action")
    def shown_action(self, event: AuditEvent) -> str:
        return audit_events.action_shown(event.action)

    shown_code = column(gettext_lazy("action's code"), lambda event: event.action)

    pseudonym = column(gettext_lazy("pseudonym"), lambda event: event.chat or "–")

    @admin.display(description=gettext_lazy("by"), ordering="actor")
    def shown_actor(self, event: AuditEvent) -> SafeString:
        kind = audit_events.ACTOR_KINDS.get(event.actor_kind, event.actor_kind)
        return format_html("{} {}", kind, _shown_person(event, event.actor) if event.actor else "")

    @admin.display(description=gettext_lazy("object"))
    def shown_object(self, event: AuditEvent) -> str:
        """Say what it was about; of a long id the beginning, for the list."""
        key = event.object_id
        short = key if len(key) <= MAX_KEY_LENGTH else f"{key[:MAX_KEY_LENGTH]}…"
        return f"{audit_events.object_shown(event.object_type)} {short}".strip() or "–"

    whole_object = column(
        gettext_lazy("object"),
        lambda event: (
            f"{audit_events.object_shown(event.object_type)} {event.object_id}".strip() or "–"
        ),
    )
    shown_chat = column(
        gettext_lazy("person"), lambda event: _shown_person(event, event.chat), ordering="chat"
    )

    @admin.display(description=gettext_lazy("sealed"), ordering="seq")
    def shown_seq(self, event: AuditEvent) -> str:
        if event.seq is None:
            return shown_mark(_("waits"))
        return shown_mark(_("no. %(number)d") % {"number": event.seq}, "good")

    shown_details = column(gettext_lazy("details"), lambda event: _shown_details(event.details))
    # Return the event as its line in the log file.
    shown_line = column(gettext_lazy("raw record"), lambda event: shown_json(line_shown(event)))


def _sees_names(request: HttpRequest) -> bool:
    return request.user.has_perm("sessions_app.view_chat")


def _shown_person(event: AuditEvent, pseudonym: str) -> SafeString:
    """Return the person's name with a link to their page, or what the log has."""
    people: dict[str, audit_events.Person] = getattr(event, "people", {})
    if pseudonym in people:
        return format_html('<a href="{1}"><bdi>{0}</bdi></a>', *people[pseudonym])
    return format_html("{}", pseudonym or "–")


def _shown_details(details: dict[str, Any]) -> SafeString:
    """Return the details as lines, one for each."""
    if not details:
        return SafeString("–")
    lines = [(name.replace("_", " "), _words(value)) for name, value in details.items()]
    return format_html_join("", '<div><span class="quiet">{}:</span> <bdi>{}</bdi></div>', lines)


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_words, value)) or "–"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_words(each)}" for name, each in value.items()) or "–"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "–" if value in (None, "") else str(value)


def _state() -> dict[str, Any]:
    """Return the chain's state for display."""
    state = chain_state(timezone.now())
    report = state["last"].report if state["last"] else None
    return {
        "chain": state,
        "report": report,
        "sentences": findings.shown_result(report) if report else [],
        "findings": findings.shown_findings(report) if report else [],
    }
