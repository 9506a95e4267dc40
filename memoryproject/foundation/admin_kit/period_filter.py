"""A list filter by time, with the same periods as the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryproject.foundation.admin_kit.display import moment_shown
from memoryproject.foundation.admin_kit.periods import DAYS, UnknownSpanError, span_of

PARAMETER = "when"


class PeriodFilter(admin.SimpleListFilter):
    """Filters by today, 7 or 30 days, or a time span named by ``periods.span_key``.

    With the same ``when`` the list shows the rows that the dashboard counted in the period.
    """

    title = gettext_lazy("time")
    parameter_name = PARAMETER
    field = "created_at"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("today", _("Today")), ("7", _("Past 7 days")), ("30", _("Past 30 days"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices, including the active time span if it is a custom one."""
        yield from super().choices(changelist)
        key = self.value()
        if key and key not in DAYS:
            start, end = self._span(key)
            yield {
                "selected": True,
                "query_string": changelist.get_query_string({PARAMETER: key}),
                "display": _("%(start)s to %(end)s")
                % {"start": moment_shown(start), "end": moment_shown(end)},
            }

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        key = self.value()
        return self.within(queryset, *self._span(key)) if key else queryset

    def within(self, queryset: QuerySet[Any], start: datetime, end: datetime) -> QuerySet[Any]:
        """Return the rows from ``start`` up to ``end``."""
        return queryset.filter(**{f"{self.field}__gte": start, f"{self.field}__lt": end})

    def _span(self, key: str) -> tuple[datetime, datetime]:
        try:
            return span_of(key, now=timezone.now())
        except UnknownSpanError:
            raise IncorrectLookupParameters from None


def period_filter(field: str) -> type[PeriodFilter]:
    """Return the filter for a model's time field."""
    return type("FieldPeriodFilter", (PeriodFilter,), {"field": field})
