"""Memories as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.core.validators import RegexValidator
from django.utils import timezone
from rest_framework import serializers

from memories_app.facts.facade import (
    MAX_CONTENT,
    MAX_LABEL,
    MAX_METADATA_BYTES,
    MAX_TAGS,
    storable_metadata,
)
from memories_app.models import MemoryStatus, Visibility
from memories_app.store.facade import CREATED, DUPLICATE, MAX_AT_ONCE
from memoryproject.foundation.rest_kit.serializers import Moment, Object, Strict, Text, Truth
from sessions_app.presentation.serializers import WhatsAppChat


class Metadata(Object):
    """An object of names and arbitrary values, of a limited size and depth."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("help_text", f"Any JSON object, at most {MAX_METADATA_BYTES} bytes.")
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse values that could only be stored in part."""
        if isinstance(data, dict) and storable_metadata(data, log=False) != data:
            raise serializers.ValidationError("It is nested too deeply.")
        return super().to_internal_value(data)


class Words(Text):
    """A text that isn't only white space."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Python's definition of white space, as JSON Schema writes it.
        pattern = (
            r"^$|[^\s\u001c-\u001f\u0085]" if self.allow_blank else r"[^\s\u001c-\u001f\u0085]"
        )
        self.validators.append(RegexValidator(pattern, "It is empty."))


def tags_field(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=Words(max_length=MAX_LABEL), max_length=MAX_TAGS, **options)


class LaterMoment(Moment):
    """A time that hasn't passed."""

    default_error_messages = {
        "past": "It has passed already: the memory would never be recalled. To end one, forget it."
    }

    def to_internal_value(self, value: Any) -> datetime:
        moment = super().to_internal_value(value)
        if moment <= timezone.now():
            self.fail("past")
        return moment


class ChangeMemorySerializer(Strict):
    """Only the given fields are changed."""

    content = Words(required=False, max_length=MAX_CONTENT)
    type = Words(required=False, max_length=MAX_LABEL)
    category = Words(required=False, max_length=MAX_LABEL, allow_blank=True)
    tags = tags_field(required=False)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)
    metadata = Metadata(required=False)
    pinned = Truth(required=False, help_text="Listed first in the admin; only staff replace it.")
    expires_at = LaterMoment(
        required=False, allow_null=True, help_text="In the future; null: it doesn't end."
    )


class NewMemorySerializer(ChangeMemorySerializer):
    """A memory to store."""

    content = Words(max_length=MAX_CONTENT, help_text="Kept byte for byte.")
    visibility = serializers.ChoiceField(
        Visibility.choices,
        required=False,
        help_text="By default chat where a chat is named, else owner.",
    )
    whatsapp_chat = WhatsAppChat(
        required=False,
        allow_null=True,
        help_text=(
            "The chat that it came from; made where new. A token that is bound to one chat needn't "
            "name it."
        ),
    )
    supersede = Truth(
        required=False,
        help_text=(
            "By default true: a known memory that says otherwise becomes superseded. false: both "
            "stay active."
        ),
    )


class MemoryBatchSerializer(Strict):
    memories = serializers.ListField(
        child=NewMemorySerializer(), min_length=1, max_length=MAX_AT_ONCE
    )


class DoneSerializer(serializers.Serializer[Any]):
    """What storing one memory did."""

    superseded = serializers.ListField(
        child=serializers.UUIDField(), help_text="The memories whose place it took."
    )
    merged = serializers.ListField(
        child=serializers.ChoiceField(["metadata", "tags"]),
        help_text="Fields of a known memory to which something was added.",
    )
    not_applied = serializers.ListField(
        child=serializers.CharField(),
        help_text="Given fields in which a known memory differs, and stays as it is: PATCH it.",
    )


class BatchedSerializer(DoneSerializer):
    memory_id = serializers.UUIDField()
    status = serializers.ChoiceField([CREATED, DUPLICATE])


class BatchAnswerSerializer(serializers.Serializer[Any]):
    memories = BatchedSerializer(many=True)


class MemorySerializer(serializers.Serializer[Any]):
    memory_id = serializers.UUIDField()
    content = serializers.CharField(help_text="As it was given, byte for byte.")
    type = serializers.CharField()
    category = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    visibility = serializers.ChoiceField(Visibility.choices)
    whatsapp_chat = serializers.CharField(allow_null=True)
    source = serializers.CharField(help_text="By what it came: command, api, staff, import, …")  # type: ignore[assignment]
    source_message_id = serializers.UUIDField(allow_null=True)
    metadata = serializers.DictField(child=serializers.JSONField())
    confidence = serializers.FloatField(allow_null=True)
    status = serializers.ChoiceField(MemoryStatus.choices)
    pinned = serializers.BooleanField()
    expires_at = Moment(allow_null=True)
    told_count = serializers.IntegerField(help_text="How often it was told.")
    last_told_at = Moment()
    superseded_by = serializers.UUIDField(source="superseded_by_id", allow_null=True)
    superseded_at = Moment(allow_null=True)
    created_at = Moment()
    updated_at = Moment()


class StoredMemorySerializer(MemorySerializer, DoneSerializer):
    """The memory as it is stored, and what storing it did."""

    outcome = serializers.ChoiceField([CREATED, DUPLICATE])


class RevisionSerializer(serializers.Serializer[Any]):
    """An earlier content of a memory."""

    number = serializers.IntegerField()
    content = serializers.CharField()
    type = serializers.CharField()
    category = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    visibility = serializers.CharField()
    changed_at = Moment(help_text="When it was changed into what came next.")
    changed_by_kind = serializers.CharField()
    changed_by_name = serializers.CharField()
    reason = serializers.CharField()


class OneMemorySerializer(MemorySerializer):
    revisions = RevisionSerializer(many=True)
