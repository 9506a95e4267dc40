"""The filters of the audit log's list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, Literal

from django.contrib import admin
from django.db import connection
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.audit.models import AuditEvent
from memoryproject.foundation.audit.words import action_shown, object_shown

ACTOR_KINDS: Mapping[str, Any] = {
    "staff": gettext_lazy("Staff"),
    "api": gettext_lazy("API tokens"),
    "person": gettext_lazy("People on WhatsApp"),
    "command": gettext_lazy("The command line"),
    "system": gettext_lazy("The system itself"),
}
# The range that fits into the database, and a day more.
FIRST_YEAR, LAST_YEAR = 1970, 9000
Events = QuerySet[AuditEvent]


class _Simple(admin.SimpleListFilter):
    """Filters by the value of one column."""

    def queryset(self, request: HttpRequest, queryset: Events) -> Events:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset


class ActionFilter(_Simple):
    """Filters by the actions that occur in the log."""

    title = gettext_lazy("action")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, action_shown(name)) for name in values_there("action")]


class ObjectTypeFilter(_Simple):
    """Filters by the type of the affected object."""

    title = gettext_lazy("object")
    parameter_name = "object_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, object_shown(name)) for name in values_there("object_type") if name]


class ActorKindFilter(_Simple):
    title = gettext_lazy("by whom")
    parameter_name = "actor_kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(kind, str(shown)) for kind, shown in ACTOR_KINDS.items()]


class Typed(admin.ListFilter):
    """A filter with a small form for typed values. ``typed`` holds the typed values."""

    parameters: tuple[str, ...] = ()
    template = "admin/audit/typed_filter.html"

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        super().__init__(request, params, model, model_admin)
        self.request = request
        given = {name: params.pop(name) for name in self.parameters if name in params}
        self.typed = {
            name: str(value[-1] if isinstance(value, list) else value).strip()
            for name, value in given.items()
        }
        self.used_parameters.update({name: text for name, text in self.typed.items() if text})

    def has_output(self) -> bool:
        return True

    def expected_parameters(self) -> list[str | None]:
        return list(self.parameters)

    def fields(self) -> list[dict[str, str]]:
        raise NotImplementedError

    def problem(self) -> str:
        """Return a message about what is wrong with the typed values."""
        return ""

    def choices(self, changelist: Any) -> Iterator[Any]:
        # The parameters of the other filters, without the page number.
        others = self.request.GET.copy()
        for name in (*self.parameters, "p"):
            others.pop(name, None)
        yield {
            "fields": self.fields(),
            "problem": self.problem(),
            "others": [(name, value) for name, values in others.lists() for value in values],
            "clear": changelist.get_query_string(remove=[*self.parameters]),
            "is_used": any(self.typed.values()),
            "quick": self.quick(changelist),
        }

    def quick(self, changelist: Any) -> list[dict[str, Any]]:
        return []


class ActorFilter(Typed):
    """Filters by the actor's name. A person's pseudonym is also accepted."""

    title = gettext_lazy("name of who did it")
    parameters = ("actor",)

    def fields(self) -> list[dict[str, str]]:
        value = self.typed.get("actor", "")[:255]
        return [{"name": "actor", "label": _("Name"), "type": "text", "value": value}]

    def queryset(self, request: HttpRequest, queryset: Events) -> Events:
        name = self.typed.get("actor", "")
        if "\0" in name:
            return queryset.none()
        return queryset.filter(actor=name) if name else queryset


class PeriodFilter(Typed):
    """Filters from one day to another, both included, in the business's time zone."""

    title = gettext_lazy("when")
    parameters = ("from", "until")

    def fields(self) -> list[dict[str, str]]:
        labels = {"from": _("From"), "until": _("Until")}
        return [
            {"name": name, "label": label, "type": "date", "value": self.typed.get(name, "")[:10]}
            for name, label in labels.items()
        ]

    def problem(self) -> str:
        wrong = [name for name in self.parameters if self.typed.get(name) and not self._day(name)]
        return _("That is no day: nothing fits.") if wrong else ""

    def queryset(self, request: HttpRequest, queryset: Events) -> Events:
        if self.problem():
            return queryset.none()
        wanted = Q()
        if (first := self._day("from")) is not None:
            wanted &= Q(at__gte=_begins(first))
        if (last := self._day("until")) is not None:
            wanted &= Q(at__lt=_begins(last + timedelta(days=1)))
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


def _begins(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def values_there(column: Literal["action", "object_type"]) -> list[str]:
    """Return each value once, by skipping through the index, however many rows each value has."""
    query = (
        "WITH RECURSIVE found AS ("  # noqa: S608 one of two names of ours
        f" SELECT min({column}) AS value FROM audit_auditevent UNION ALL"
        f" SELECT (SELECT min(event.{column}) FROM audit_auditevent event"
        f" WHERE event.{column} > found.value) FROM found WHERE found.value IS NOT NULL)"
        " SELECT value FROM found WHERE value IS NOT NULL ORDER BY value"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        return [value for (value,) in cursor.fetchall()]
