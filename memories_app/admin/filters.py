"""Filters of the list of memories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import F, Func, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memories_app.models import Memory, MemoryStatus
from memories_app.selectors import is_current

MOST_TAGS = 50


class StateFilter(admin.SimpleListFilter):
    """What is recalled is shown unasked."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("proposed", "Wait for staff"),
            ("superseded", "Superseded"),
            ("expired", "Expired"),
            ("all", "All"),
        ]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": "Recalled"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        value = self.value()
        if value == "all":
            return queryset
        if value in ("proposed", "superseded"):
            return queryset.filter(status=value)
        active = queryset.filter(status=MemoryStatus.ACTIVE)
        if value == "expired":
            return active.filter(expires_at__lte=timezone.now())
        return active.filter(is_current(timezone.now()))


class TagFilter(admin.SimpleListFilter):
    title = "tag"
    parameter_name = "tag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        tagged = Memory.objects.exclude(tags=[]).order_by()
        tags = tagged.annotate(tag=Func(F("tags"), function="unnest")).values_list("tag", flat=True)
        return [(tag, tag) for tag in sorted(tags.distinct()[:MOST_TAGS])]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        value = self.value()
        return queryset.filter(tags__contains=[value]) if value else queryset
