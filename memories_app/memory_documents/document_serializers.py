"""Memory documents as JSON, and the filters of their lists."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import django_filters
from django import forms
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories_app.memory_document_format.envelope import read_duration
from memories_app.memory_document_format.names import CATEGORIES, Pattern
from memories_app.models import MemoryDocument
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.serializers import (
    Choice,
    ChoiceFilter,
    Moment,
    Strict,
    Text,
    TruthFilter,
)

# The limit for clients; longer input is accepted if it is a valid time.
AGE = r"^([0-9]{1,9}s|[0-9]{1,7}m|[0-9]{1,5}h|[0-9]{1,4}d|[0-9]{1,3}w)$"


@extend_schema_field({"type": "string", "pattern": AGE})
class Duration(Text):
    """Parse 7d, 24h, 2w or 30m to a timedelta."""

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        try:
            return read_duration(text)
        except ValueError as error:
            raise serializers.ValidationError(f"{error}.") from None


class MemoryDocumentEntrySerializer(serializers.Serializer[MemoryDocument]):
    """The fields of a document in lists."""

    category = serializers.ChoiceField(CATEGORIES)
    identifier = serializers.CharField()
    name = serializers.CharField()
    summary = serializers.CharField()
    created = Moment()
    changed = Moment()
    status = serializers.CharField()
    session_id = serializers.CharField()
    archived = serializers.SerializerMethodField()

    def get_archived(self, row: MemoryDocument) -> bool:
        return row.archived_at is not None


class MemoryDocumentSerializer(serializers.Serializer[Any]):
    """A document, exactly as it is stored."""

    meta = serializers.DictField()
    content = serializers.DictField()


class ArchivedDocumentSerializer(serializers.Serializer[Any]):
    """The place where a document is now."""

    category = serializers.ChoiceField(CATEGORIES)
    name = serializers.CharField()
    path = serializers.CharField()
    archived = serializers.BooleanField()


class CleanupSerializer(Strict):
    category = Choice(CATEGORIES)
    older_than = Duration()


class RemovedDocumentsSerializer(serializers.Serializer[Any]):
    removed = serializers.IntegerField()
    names = fields.texts()


# Filters of lists of documents.


def moment_or_age(text: str) -> datetime:
    """Return a time, or the time that an age such as ``7d`` means. Raises ValueError."""
    try:
        return timezone.now() - read_duration(text)
    except ValueError:
        field = Moment()
        field.field_name = "since"
        try:
            found: datetime = field.run_validation(text)
        except serializers.ValidationError:
            raise ValueError(
                "It must be an age such as 7d or 24h, or a time such as 2026-01-31T09:30:00Z."
            ) from None
        return found


class ParsedFormField(forms.CharField):
    """A text that ``parse`` turns into a value; its ValueError or name error says why not."""

    def __init__(self, *, parse: Callable[[str], Any], **options: Any) -> None:
        super().__init__(**options)
        self.parse = parse

    def clean(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            return self.parse(super().clean(value))
        except ValueError as error:
            raise forms.ValidationError(str(error), code="invalid") from error


@extend_schema_field(
    {"anyOf": [{"type": "string", "pattern": AGE}, {"type": "string", "format": "date-time"}]}
)
class SinceFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = ParsedFormField


class PatternFilter(django_filters.Filter):  # type: ignore[misc]
    field_class = ParsedFormField


class DocumentFilters(django_filters.FilterSet):  # type: ignore[misc]
    category = ChoiceFilter(
        choices=[(each, each) for each in CATEGORIES], help_text=", ".join(CATEGORIES)
    )
    pattern = PatternFilter(parse=Pattern, method="fitting")
    since = SinceFilter(parse=moment_or_age, strip=False, field_name="changed", lookup_expr="gte")
    session_id = django_filters.CharFilter()
    archived = TruthFilter(method="in_archive")

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
