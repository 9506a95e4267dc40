"""Memories as JSON."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.validators import RegexValidator
from django.utils import timezone
from rest_framework import serializers

from memories_app.facts.validation import (
    MAX_CONTENT,
    MAX_LABEL,
    MAX_METADATA_BYTES,
    MAX_PLACE,
    MAX_TAGS,
    storable_metadata,
)
from memories_app.models import MemoryStatus, Visibility
from memories_app.store.deduplicate import CREATED, DUPLICATE
from memories_app.store.remember import MAX_AT_ONCE
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.serializers import (
    Choice,
    Items,
    Object,
    StoredMoment,
    Strict,
    Text,
    Truth,
)
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


class Words(Text):
    """A text that isn't only white space."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Python's definition of white space, as JSON Schema writes it.
        pattern = (
            r"^$|[^\s\u001c-\u001f\u0085]" if self.allow_blank else r"[^\s\u001c-\u001f\u0085]"
        )
        self.validators.append(RegexValidator(pattern, "It is empty."))


class PlacePart(Words):
    """A namespace or a key."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=MAX_PLACE, **kwargs)


def tags_field(**options: Any) -> serializers.ListField:
    return Items(child=Words(max_length=MAX_LABEL), max_length=MAX_TAGS, **options)


class LaterMoment(StoredMoment):
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

    content = Words(
        required=False,
        max_length=MAX_CONTENT,
        help_text="The fact, as a text that is kept byte for byte.",
    )
    type = Words(
        required=False,
        max_length=MAX_LABEL,
        help_text="The kind of memory, in a word of your own. A new memory has fact by default.",
    )
    category = Words(
        required=False,
        max_length=MAX_LABEL,
        allow_blank=True,
        help_text="A group, in a word of your own; empty: none.",
    )
    tags = tags_field(
        required=False, help_text="Labels of your own. A change replaces all of them."
    )
    visibility = Choice(
        Visibility.choices,
        required=False,
        help_text="Who recalls it: the owner alone, the chat that it came from, or everyone.",
    )
    metadata = Metadata(required=False)
    pinned = Truth(required=False, help_text="Listed first in the admin; only staff replace it.")
    expires_at = LaterMoment(
        required=False, allow_null=True, help_text="In the future; null: it doesn't end."
    )
    said_at = StoredMoment(
        required=False, help_text="When it was said, not in the future. By default now."
    )
    valid_from = StoredMoment(
        required=False,
        allow_null=True,
        help_text=(
            "From when on it holds; null: always. Without both times, a new text tells them by "
            "its words, such as “from Sunday”."
        ),
    )
    valid_until = StoredMoment(
        required=False,
        allow_null=True,
        help_text=(
            "The last moment at which it holds, not before valid_from; null: it doesn't end. After "
            "it, it is recalled only where nothing else is known, and then as ended."
        ),
    )


class NewMemorySerializer(ChangeMemorySerializer):
    """A memory to store."""

    content = Words(max_length=MAX_CONTENT, help_text="Kept byte for byte.")
    visibility = Choice(
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
    dedupe = Truth(
        required=False,
        help_text=(
            "By default true. false: it is a memory of its own, whatever others say: it is "
            "compared with none, now and later, and supersedes none."
        ),
    )


class MemoryBatchSerializer(Strict):
    memories = Items(
        child=NewMemorySerializer(),
        min_length=1,
        max_length=MAX_AT_ONCE,
        help_text="All of them are stored, or none.",
    )


class PatchMemorySerializer(ChangeMemorySerializer):
    memory_id = serializers.UUIDField(help_text="The memory that is changed.")


class PatchMemoriesSerializer(Strict):
    memories = Items(
        child=PatchMemorySerializer(),
        min_length=1,
        max_length=MAX_AT_ONCE,
        help_text="All of them are changed, or none; each memory once.",
    )

    @property
    def partial(self) -> bool:
        """False: the schema would else make all that a PATCH takes optional, also the list."""
        return False

    @partial.setter
    def partial(self, value: bool) -> None:
        pass


class DoneSerializer(serializers.Serializer[Any]):
    """The outcome of storing one memory."""

    superseded = serializers.ListField(
        child=serializers.UUIDField(), help_text="The memories whose place it took."
    )
    merged = serializers.ListField(
        child=serializers.ChoiceField(["metadata", "tags"]),
        help_text="Fields of a known memory to which something was added.",
    )
    not_applied = fields.texts(
        "Given fields in which a known memory differs, and stays as it is: PATCH it."
    )


class MemoryBatchEntrySerializer(DoneSerializer):
    memory_id = fields.uuid("The id of the new memory, or of the known one.")
    status = serializers.ChoiceField(
        [CREATED, DUPLICATE],
        help_text="created: it is new. duplicate: it was known, and counts as mentioned again.",
    )


class MemoryBatchResultSerializer(serializers.Serializer[Any]):
    memories = MemoryBatchEntrySerializer(
        many=True, help_text="One for each given memory, in the order given."
    )


class MemorySerializer(serializers.Serializer[Any]):
    memory_id = fields.uuid("Names the memory in addresses, receipts and replays.")
    content = fields.text("As it was given, byte for byte; of a keyed memory may be empty.")
    type = fields.text("The kind that was given with it; by default fact.")
    category = fields.text("The group that was given with it; empty: none.")
    tags = fields.texts("Its labels; empty: none.")
    visibility = serializers.ChoiceField(
        Visibility.choices,
        help_text="Who recalls it: the owner alone, the chat that it came from, or everyone.",
    )
    whatsapp_chat = fields.text(
        "The chat that it came from, in the stored form of its id; null: none.", allow_null=True
    )
    source = fields.text("By what it came: command, api, staff, import, …")  # type: ignore[assignment]
    source_message_id = fields.uuid(
        "The id of the message that it came from; null: none.", allow_null=True
    )
    namespace = fields.text("Of a keyed memory; null: it is none.", allow_null=True)
    key = fields.text("Of a keyed memory; null: it is none.", allow_null=True)
    value = fields.json_object("Of a keyed memory; null: it is none.", allow_null=True)
    metadata = fields.json_object("The JSON object that was stored with it; empty: none.")
    confidence = fields.fraction(
        "From 0 to 1, for memories learned from conversations; null for others.", allow_null=True
    )
    status = serializers.ChoiceField(
        MemoryStatus.choices,
        help_text="Only active ones are recalled. superseded: replaced. proposed: waits for staff.",
    )
    pinned = fields.truth("Listed first in the admin, and never merged or replaced without staff.")
    expires_at = fields.moment(
        "From then on it is neither recalled nor listed; null: it doesn't end.", allow_null=True
    )
    said_at = fields.moment("When it was said last; by default when it was stored.")
    valid_from = fields.moment("From when on it holds; null: always.", allow_null=True)
    valid_until = fields.moment(
        "The last moment at which it holds; null: it doesn't end.", allow_null=True
    )
    told_count = fields.number("How often it was mentioned, from 1.")
    last_told_at = fields.moment("When it was last mentioned; at first when it was stored.")
    superseded_by = fields.uuid(
        "The id of the memory that replaced it; null: none, or it was forgotten.",
        source="superseded_by_id",
        allow_null=True,
    )
    superseded_at = fields.moment("When it was replaced; null: it wasn't.", allow_null=True)
    created_at = fields.moment("When it was first stored.")
    updated_at = fields.moment("When anything of it was last changed.")


class PatchedMemoriesSerializer(serializers.Serializer[Any]):
    memories = MemorySerializer(many=True, help_text="As they are now, in the order given.")


class StoredMemorySerializer(MemorySerializer, DoneSerializer):
    """The memory as it is stored, and what storing it did."""

    outcome = serializers.ChoiceField(
        [CREATED, DUPLICATE],
        help_text="created: it is new. duplicate: it was known, and counts as mentioned again.",
    )


class MemoryRevisionSerializer(serializers.Serializer[Any]):
    """An earlier content of a memory."""

    number = fields.number("Its place among the memory's revisions, from 1, the oldest first.")
    content = fields.text("The text before the change.")
    value = fields.json_object(
        "Of a keyed memory, before the change; null: it is none.", allow_null=True
    )
    type = fields.text("The kind of memory before the change.")
    category = fields.text("The group before the change; empty: none.")
    tags = fields.texts("The labels before the change; empty: none.")
    visibility = fields.text("Before the change: owner, chat or public.")
    changed_at = fields.moment("When it was changed into what came next.")
    changed_by_kind = fields.text("Who changed it: staff, api, person, command or system.")
    changed_by_name = fields.text("The name of the user or of the token; empty for others.")
    reason = fields.text("Why it was changed: updated, superseded or merged.")


class MemoryDetailSerializer(MemorySerializer):
    revisions = MemoryRevisionSerializer(
        many=True, help_text="Its earlier contents, the oldest first; empty: none."
    )
