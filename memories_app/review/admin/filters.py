"""Filters of the list of memories. No filter scans a whole table for its choices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories_app.models import (
    EmbeddingModel,
    EmbeddingState,
    Memory,
    MemoryEmbedding,
    MemoryStatus,
    ProposalMemory,
    ProposalState,
)
from memories_app.review.admin.state_labels import source_label, type_label
from memories_app.visibility import is_current, memories_visible, tags_in_use, values_in_use
from memoryproject.foundation.text.uuids import uuid_or_none


class StateFilter(admin.SimpleListFilter):
    """Show recalled memories unless another state is selected."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("proposed", _("To review")),
            ("superseded", _("Superseded")),
            ("expired", _("Expired")),
            ("all", _("All")),
        ]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": _("Recalled")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        value = self.value()
        if value == "all" or day_of(request) is not None:
            return queryset
        if value in ("proposed", "superseded"):
            return queryset.filter(status=value)
        active = queryset.filter(status=MemoryStatus.ACTIVE)
        if value == "expired":
            return active.filter(expires_at__lte=timezone.now())
        return active.filter(is_current(timezone.now()))


class InUseFilter(admin.SimpleListFilter):
    """Offer the values that an indexed field has."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(each, self.label(each)) for each in values_in_use(str(self.parameter_name))]

    def label(self, value: str) -> str:
        """Return the name under which a value is offered."""
        return value

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset


class TypeFilter(InUseFilter):
    title = _("type")
    parameter_name = "type"

    def label(self, value: str) -> str:
        return type_label(value)


class CategoryFilter(InUseFilter):
    title = _("category")
    parameter_name = "category"


class SourceFilter(InUseFilter):
    title = _("source")
    parameter_name = "source"

    def label(self, value: str) -> str:
        return source_label(value)


class TagFilter(admin.SimpleListFilter):
    title = _("tag")
    parameter_name = "tag"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        chosen = request.GET.get("tag", "")
        return [(tag, tag) for tag in sorted({*tags_in_use(), *([chosen] if chosen else [])})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        value = self.value()
        return queryset.filter(tags__contains=[value]) if value else queryset


class VectorFilter(admin.SimpleListFilter):
    """Filter by vector. Only lexical search finds memories without a vector of the active model."""

    title = _("vector")
    parameter_name = "vector"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("none", _("Has none: found by its words only"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if self.value() != "none":
            return queryset
        in_use = EmbeddingModel.objects.filter(state=EmbeddingState.ACTIVE).first()
        name = in_use.model_id if in_use else ""
        vectors = MemoryEmbedding.objects.filter(memory=OuterRef("pk"), model=name)
        # Query all memories, not only the shown ones: the database then compares two indexes and
        # doesn't read every memory.
        missing = Memory.objects.filter(~Exists(vectors))
        return queryset.filter(pk__in=missing.values("pk"))


class PendingFilter(admin.SimpleListFilter):
    title = _("to decide")
    parameter_name = "pending"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Duplicates and contradictions"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        if self.value() != "yes":
            return queryset
        in_proposals = ProposalMemory.objects.filter(proposal__state=ProposalState.OPEN)
        return queryset.filter(pk__in=in_proposals.values("memory"))


def day_of(request: HttpRequest) -> datetime | None:
    """Return the end of the day as of which the list is wanted, there where the business is."""
    try:
        day = date.fromisoformat(request.GET.get(AsOfFilter.parameter_name, ""))
        return datetime.combine(day, time.max, ZoneInfo(settings.BUSINESS_TIME_ZONE))
    except (ValueError, OverflowError):
        return None


class TypedFilter(admin.SimpleListFilter):
    """Filter by a typed value."""

    template = "admin/memories_app/memory/typed_filter.html"
    kind = "text"
    label: Any = ""

    def has_output(self) -> bool:
        return True

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield one choice, which the template renders as a form that keeps the other filters."""
        others = changelist.get_filters_params()
        yield {
            "name": self.parameter_name,
            "value": self._shown(),
            "kind": self.kind,
            "label": self.label,
            "others": [
                (name, value)
                for name, values in others.items()
                if name != self.parameter_name
                for value in values
            ],
            "query": changelist.query,
        }

    def _shown(self) -> str:
        return self.value() or ""


class AsOfFilter(TypedFilter):
    """Show what was believed on a day: said by then, valid then, and not yet replaced."""

    title = _("believed on")
    parameter_name = "as_of"
    kind = "date"
    label = _("Day")

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        at = day_of(request)
        if at is None:
            return queryset
        then = memories_visible(is_owner=False, is_staff=True, chat_id=None, as_of=at)
        return queryset.filter(pk__in=then.exclude(valid_until__lt=at).order_by().values("pk"))


class ChatFilter(TypedFilter):
    """Filter by a person, whose name or number is typed: there may be ten thousand."""

    title = _("person")
    parameter_name = "chat"
    label = _("Name or number")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        self._find, self._names = model_admin.find_chats, model_admin.chat_names
        return []

    def _shown(self) -> str:
        """Return what was typed; the name of the person whom a row's link chose."""
        value: str = self.value() or ""
        key = uuid_or_none(value)
        if key is None:
            return value
        names: dict[UUID, str] = self._names({key})
        return names.get(key, value)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> QuerySet[Memory]:
        name = (self.value() or "").strip()
        if not name:
            return queryset
        found: list[UUID] = self._find(name) if "\x00" not in name else []
        return queryset.filter(chat_id__in=found)
