"""Memory documents as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories_app.memory_document_format.facade import CATEGORIES, read_duration
from memories_app.models import MemoryDocument
from memoryproject.foundation.rest_kit.serializers import (
    Choice,
    Moment,
    Strict,
    Text,
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
    identifier = serializers.CharField(help_text="The name without the date of context.")
    name = serializers.CharField(help_text="That of its file, without .json.")
    summary = serializers.CharField(help_text="What it is about, as the document says.")
    created = Moment(help_text="When it was created, as the document says.")
    changed = Moment(help_text="When it was last saved.")
    status = serializers.CharField(help_text="A decision's status, or a handoff's percentage.")
    session_id = serializers.CharField(
        help_text="The session that it comes from, as the document says; empty: none."
    )
    archived = serializers.SerializerMethodField(help_text="Whether it is in the archive.")

    def get_archived(self, row: MemoryDocument) -> bool:
        return row.archived_at is not None


class MemoryDocumentSerializer(serializers.Serializer[Any]):
    """A document, exactly as it is stored."""

    meta = serializers.DictField(help_text="created, category, summary, and more.")
    content = serializers.DictField(help_text="By its category; unknown fields are kept.")


class ArchivedDocumentSerializer(serializers.Serializer[Any]):
    """The place where a document is now."""

    category = serializers.ChoiceField(CATEGORIES)
    name = serializers.CharField(
        help_text="Its name there: with a number where the name was taken."
    )
    path = serializers.CharField(
        help_text="Its place in a tree of files, such as archive/decisions/use-postgres.json."
    )
    archived = serializers.BooleanField(help_text="Whether it is in the archive: true.")


class CleanupSerializer(Strict):
    category = Choice(CATEGORIES)
    older_than = Duration(help_text="7d, 24h, 2w or 30m.")


class RemovedDocumentsSerializer(serializers.Serializer[Any]):
    removed = serializers.IntegerField(help_text="How many documents were removed.")
    names = serializers.ListField(
        child=serializers.CharField(),
        help_text="The names of the removed documents; empty: none was old enough.",
    )


def moment_or_age(text: str) -> datetime:
    """Return a time, or the time that an age such as ``7d`` means. Raises ValidationError."""
    try:
        return timezone.now() - read_duration(text)
    except ValueError:
        field = Moment()
        field.field_name = "since"
        try:
            found: datetime = field.run_validation(text)
        except serializers.ValidationError:
            message = "It must be an age such as 7d or 24h, or a time such as 2026-01-31T09:30:00Z."
            raise serializers.ValidationError(message) from None
        return found
