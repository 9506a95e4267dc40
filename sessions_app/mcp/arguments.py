"""What tools take, where it isn't the body of their operation; and the schemas of serializers.

Assistants pay for each word of a schema: only the first sentence of a field's description is in it.
"""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from memories_app.memory_document_format.names import CATEGORIES
from memories_app.models import MemoryStatus
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit.errors import refuse
from memoryproject.foundation.rest_kit.fields import meaning_of
from memoryproject.foundation.rest_kit.pagination import MAX_LIMIT
from memoryproject.foundation.rest_kit.serializers import Choice, Items, Strict, Text, Truth, Whole
from sessions_app.conversations.message_store import MAX_MESSAGES
from sessions_app.memories.api.serializers import ChangeMemorySerializer
from sessions_app.models import Role, SessionStatus
from sessions_app.presentation.serializers import WhatsAppChat
from sessions_app.turns.turn_api import ContextQuestionSerializer

EITHER = "Give either session_id or whatsapp_chat."
YAML = "yaml"
FORMATS = ("json", YAML)


DEFAULT_TOKENS = 4_000
MAX_TOKENS = 1_000_000


class AnswerLimit(Strict):
    """Of every tool."""

    max_tokens = Whole(required=False, min_value=1, max_value=MAX_TOKENS)


class MemoryArguments(Strict):
    memory_id = serializers.UUIDField()


class ChangeArguments(ChangeMemorySerializer):
    memory_id = serializers.UUIDField()


class MessageArguments(Strict):
    role = Choice([Role.USER, Role.ASSISTANT])
    content = Text()
    timestamp = Text(required=False)


class Place(Strict):
    """The two ways to name a conversation."""

    session_id = serializers.UUIDField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "session_id" in attrs and "whatsapp_chat" in attrs:
            raise refuse(EITHER)
        return attrs


class MessagesArguments(Place):
    messages = Items(child=MessageArguments(), min_length=1, max_length=MAX_MESSAGES)
    whatsapp_chat = WhatsAppChat(required=False)
    learn = Truth(required=False)


class ContextArguments(Place, ContextQuestionSerializer):
    whatsapp_chat = WhatsAppChat(required=False)


# Fewer than over REST: each takes a good 80 tokens of the assistant's context.
ROWS_ON_A_PAGE = 20


class PageArguments(Strict):
    limit = Whole(
        required=False, min_value=1, max_value=MAX_LIMIT, help_text=f"By default {ROWS_ON_A_PAGE}."
    )
    cursor = Text(required=False)


class SessionsArguments(PageArguments):
    whatsapp_chat = WhatsAppChat(required=False)
    status = Choice(SessionStatus.choices, required=False)
    since = Text(required=False)


class MemoriesArguments(PageArguments):
    whatsapp_chat = WhatsAppChat(required=False)
    text = Text(required=False)
    type = Text(required=False)
    category = Text(required=False)
    tags = Items(child=Text(), required=False)
    status = Choice(MemoryStatus.choices, required=False)
    since = Text(required=False)


class CardArguments(Strict):
    session_id = serializers.UUIDField()
    format = Choice(FORMATS, required=False)


class DocumentArguments(Strict):
    category = Choice(CATEGORIES)
    identifier = Text()


class LoadArguments(DocumentArguments):
    archived = Truth(required=False)


class SaveArguments(DocumentArguments):
    content = serializers.DictField(child=serializers.JSONField(allow_null=True))
    session_id = Text(required=False, allow_blank=True)


# JSON Schema (2020-12) of the API's serializers.

Schema = dict[str, Any]
Field = serializers.Field[Any, Any, Any, Any]

KINDS: tuple[tuple[type[Field], Schema], ...] = (
    (serializers.UUIDField, {"type": "string"}),
    (serializers.DateTimeField, {"type": "string", "format": "date-time"}),
    (serializers.BooleanField, {"type": "boolean"}),
    (serializers.IntegerField, {"type": "integer"}),
    (serializers.FloatField, {"type": "number"}),
    (serializers.CharField, {"type": "string"}),
    (serializers.DictField, {"type": "object"}),
)
BOUNDS = (("min_value", "minimum"), ("max_value", "maximum"))
# What tools answer is described by their own description: as schemas it would take most of the
# room that the definitions have.
ANY_OBJECT: Schema = {"type": "object"}


def schema_of(
    serializer_class: type[serializers.Serializer[Any]], says: Mapping[str, str]
) -> Schema:
    """Return the schema of a tool's arguments; for a strict serializer without unknown fields.

    ``says``: descriptions in place of those of the API; empty where the name says enough.
    """
    schema = _object(serializer_class())
    for name, text in says.items():
        schema["properties"][name].pop("description", None)
        schema["properties"][name].update({"description": text} if text else {})
    schema["properties"].setdefault("max_tokens", {"type": "integer"})
    return schema


def _object(field: Field | None) -> Schema:
    serializer: serializers.Serializer[Any] = instance(field, serializers.Serializer)
    fields = serializer.fields
    schema: Schema = {
        "type": "object",
        "properties": {name: _described(field) for name, field in fields.items()},
    }
    if required := [name for name, field in fields.items() if field.required]:
        schema["required"] = required
    return {**schema, "additionalProperties": False} if isinstance(serializer, Strict) else schema


def _described(field: Field) -> Schema:
    schema = _plain(field)
    for attribute, keyword in BOUNDS:
        bound = getattr(field, attribute, None)
        if bound is not None:
            schema[keyword] = bound
    meaning = meaning_of(type(field.parent), str(field.field_name)) or str(field.help_text or "")
    if meaning:
        schema["description"] = meaning.partition(". ")[0].removesuffix(".")
    if field.default is not serializers.empty and not callable(field.default):
        schema["default"] = field.default
    if field.allow_null and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if field.allow_null and "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _plain(field: Field) -> Schema:
    if isinstance(field, serializers.ChoiceField):
        return {"type": "string", "enum": list(field.choices)}
    if isinstance(field, serializers.ListSerializer):
        return {"type": "array", "items": _object(field.child)}
    if isinstance(field, serializers.ListField):
        return {"type": "array", "items": _described(field.child)}
    if isinstance(field, serializers.Serializer):
        return _object(field)
    for kind, schema in KINDS:
        if isinstance(field, kind):
            return dict(schema)
    return {}
