"""Memories as JSON."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.validators import RegexValidator
from django.utils import timezone
from rest_framework import serializers

from memories_app.facts import validation
from memories_app.models import MemoryStatus, Visibility
from memories_app.store.deduplicate import CREATED, DUPLICATE
from memories_app.store.remember import MAX_AT_ONCE
from memoryproject.foundation.rest_kit import fields, serializers as kit
from memoryproject.foundation.text.characters import BLANKS
from sessions_app.presentation.serializers import WhatsAppChat


class Metadata(kit.Object):
    """An object of names and arbitrary values, of a limited size and depth."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault(
            "help_text", f"Any JSON object, at most {validation.MAX_METADATA_BYTES} bytes."
        )
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse values that could only be stored in part."""
        if isinstance(data, dict) and validation.storable_metadata(data, log=False) != data:
            raise serializers.ValidationError("It is nested too deeply.")
        return super().to_internal_value(data)


OPERATORS = frozenset(
    ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "not", "and", "or", "contains", "icontains")
)


class EqualMetadata(Metadata):
    """Names with values that are compared for equality.

    The operators of other products are refused: as names they would match nothing.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        found = super().to_internal_value(data)
        operator = next(_operators(found), None)
        if operator is not None:
            raise serializers.ValidationError(
                f"Values are compared for equality: there is no operator {operator[:50]}."
            )
        return found


def _operators(value: Any, *, is_nested: bool = False) -> Iterator[str]:
    """Yield the names that other products take for operators."""
    if isinstance(value, list):
        for each in value:
            yield from _operators(each, is_nested=True)
    elif isinstance(value, dict):
        for name, each in value.items():
            if (
                name.startswith("$")
                or (is_nested and name.lower() in OPERATORS)
                or (name in ("AND", "OR", "NOT"))
            ):
                yield name
            yield from _operators(each, is_nested=True)


class Words(kit.Text):
    """A text of which something is seen."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        pattern = rf"^$|[^{BLANKS}]" if self.allow_blank else rf"[^{BLANKS}]"
        self.validators.append(RegexValidator(pattern, "It is empty."))


class PlacePart(Words):
    """A namespace or a key."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=validation.MAX_PLACE, **kwargs)


def tags_field(**options: Any) -> serializers.ListField:
    return kit.Items(
        child=Words(max_length=validation.MAX_LABEL), max_length=validation.MAX_TAGS, **options
    )


class LaterMoment(kit.StoredMoment):
    """A time that hasn't passed."""

    default_error_messages = {
        "past": "It has passed already: the memory would never be recalled. To end one, forget it."
    }

    def to_internal_value(self, value: Any) -> datetime:
        moment = super().to_internal_value(value)
        if moment <= timezone.now():
            self.fail("past")
        return moment


class ChangeMemorySerializer(kit.Strict):
    """Only the given fields are changed."""

    content = Words(required=False, max_length=validation.MAX_CONTENT)
    type = Words(required=False, max_length=validation.MAX_LABEL)
    category = Words(required=False, max_length=validation.MAX_LABEL, allow_blank=True)
    tags = tags_field(required=False)
    visibility = kit.Choice(Visibility.choices, required=False)
    metadata = Metadata(required=False)
    pinned = kit.Truth(required=False)
    expires_at = LaterMoment(required=False, allow_null=True)
    said_at = kit.StoredMoment(required=False)
    valid_from = kit.StoredMoment(required=False, allow_null=True)
    valid_until = kit.StoredMoment(required=False, allow_null=True)


class NewMemorySerializer(ChangeMemorySerializer):
    """A memory to store."""

    content = Words(max_length=validation.MAX_CONTENT)
    visibility = kit.Choice(Visibility.choices, required=False)
    whatsapp_chat = WhatsAppChat(required=False, allow_null=True)
    supersede = kit.Truth(required=False)
    dedupe = kit.Truth(required=False)


class MemoryBatchSerializer(kit.Strict):
    memories = kit.Items(child=NewMemorySerializer(), min_length=1, max_length=MAX_AT_ONCE)


class PatchMemorySerializer(ChangeMemorySerializer):
    memory_id = serializers.UUIDField()


class PatchMemoriesSerializer(kit.Strict):
    memories = kit.Items(child=PatchMemorySerializer(), min_length=1, max_length=MAX_AT_ONCE)

    @property
    def partial(self) -> bool:
        """False: the schema would else make all that a PATCH takes optional, also the list."""
        return False

    @partial.setter
    def partial(self, value: bool) -> None:
        pass


class DoneSerializer(serializers.Serializer[Any]):
    """The outcome of storing one memory."""

    superseded = serializers.ListField(child=serializers.UUIDField())
    merged = serializers.ListField(child=serializers.ChoiceField(["metadata", "tags"]))
    not_applied = fields.texts()


class MemoryBatchEntrySerializer(DoneSerializer):
    memory_id = serializers.UUIDField()
    status = serializers.ChoiceField([CREATED, DUPLICATE])


class MemoryBatchResultSerializer(serializers.Serializer[Any]):
    memories = MemoryBatchEntrySerializer(many=True)


class MemorySerializer(serializers.Serializer[Any]):
    memory_id = serializers.UUIDField()
    content = serializers.CharField()
    type = serializers.CharField()
    category = serializers.CharField()
    tags = fields.texts()
    visibility = serializers.ChoiceField(Visibility.choices)
    whatsapp_chat = serializers.CharField(allow_null=True)
    source = serializers.CharField()  # type: ignore[assignment]
    source_message_id = serializers.UUIDField(allow_null=True)
    namespace = serializers.CharField(allow_null=True)
    key = serializers.CharField(allow_null=True)
    value = fields.json_object(allow_null=True)
    metadata = fields.json_object()
    confidence = serializers.FloatField(allow_null=True)
    status = serializers.ChoiceField(MemoryStatus.choices)
    pinned = serializers.BooleanField()
    expires_at = kit.Moment(allow_null=True)
    said_at = kit.Moment()
    valid_from = kit.Moment(allow_null=True)
    valid_until = kit.Moment(allow_null=True)
    told_count = serializers.IntegerField()
    last_told_at = kit.Moment()
    superseded_by = serializers.UUIDField(source="superseded_by_id", allow_null=True)
    superseded_at = kit.Moment(allow_null=True)
    created_at = kit.Moment()
    updated_at = kit.Moment()


class PatchedMemoriesSerializer(serializers.Serializer[Any]):
    memories = MemorySerializer(many=True)


class StoredMemorySerializer(MemorySerializer, DoneSerializer):
    """The memory as it is stored, and what storing it did."""

    outcome = serializers.ChoiceField([CREATED, DUPLICATE])


class MemoryRevisionSerializer(serializers.Serializer[Any]):
    """An earlier content of a memory."""

    number = serializers.IntegerField()
    content = serializers.CharField()
    value = fields.json_object(allow_null=True)
    type = serializers.CharField()
    category = serializers.CharField()
    tags = fields.texts()
    visibility = serializers.CharField()
    changed_at = kit.Moment()
    changed_by_kind = serializers.CharField()
    changed_by_name = serializers.CharField()
    reason = serializers.CharField()


class MemoryDetailSerializer(MemorySerializer):
    revisions = MemoryRevisionSerializer(many=True)
