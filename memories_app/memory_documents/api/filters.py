"""Filters of lists of documents."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError

from memories_app.memory_document_format.facade import CATEGORIES, MemoryDocumentNameError, Pattern
from memories_app.memory_documents.api.serializers import AGE, moment_or_age
from memories_app.models import MemoryDocument
from memoryproject.foundation.rest_kit.filters import ChoiceFilter, TruthFilter


class SinceFormField(forms.CharField):
    def clean(self, value: Any) -> datetime | None:
        if value is None:
            return None
        try:
            return moment_or_age(value)
        except ValidationError as error:
            message = " ".join(str(text) for text in error.detail)
            raise forms.ValidationError(message, code="invalid") from error


@extend_schema_field(
    {"anyOf": [{"type": "string", "pattern": AGE}, {"type": "string", "format": "date-time"}]}
)
class SinceFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = SinceFormField


class PatternFormField(forms.CharField):
    def clean(self, value: Any) -> Pattern | None:
        if value is None:
            return None
        text = super().clean(value)
        try:
            return Pattern(text)
        except MemoryDocumentNameError as error:
            raise forms.ValidationError(str(error), code="invalid") from error


class PatternFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = PatternFormField


class DocumentFilters(django_filters.FilterSet):  # type: ignore[misc]
    category = ChoiceFilter(
        choices=[(each, each) for each in CATEGORIES], help_text=", ".join(CATEGORIES)
    )
    pattern = PatternFilter(
        method="fitting", help_text="Such as auth*: * any characters, ? one, [ab] a or b."
    )
    since = SinceFilter(
        field_name="changed",
        lookup_expr="gte",
        help_text="Saved since then: 7d, 24h, or a time such as 2026-01-31T09:30:00Z.",
    )
    session_id = django_filters.CharFilter(help_text="Those that come from this session.")
    archived = TruthFilter(
        method="in_archive",
        help_text="true: those in the archive instead.",
    )

    class Meta:
        model = MemoryDocument
        fields: list[str] = []

    def fitting(
        self, rows: QuerySet[MemoryDocument], _: str, value: Pattern
    ) -> QuerySet[MemoryDocument]:
        """Match names as the command does, with the same pattern."""
        named = rows.order_by().values_list("pk", "category", "name")
        return rows.filter(pk__in=[pk for pk, *place in named if value.fits(*place)])

    def in_archive(
        self, rows: QuerySet[MemoryDocument], _: str, value: bool
    ) -> QuerySet[MemoryDocument]:
        return rows  # filter_queryset has done it

    def filter_queryset(self, queryset: QuerySet[MemoryDocument]) -> QuerySet[MemoryDocument]:
        archived = bool(self.form.cleaned_data.get("archived"))
        queryset = queryset.filter(archived_at__isnull=not archived)
        found: QuerySet[MemoryDocument] = super().filter_queryset(queryset)
        return found
