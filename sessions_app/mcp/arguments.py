"""What tools take, where it isn't the body of their operation; and the schemas of serializers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memories_app.memory_document_format.names import CATEGORIES
from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.rest_kit.pagination import MAX_LIMIT
from memoryproject.foundation.rest_kit.serializers import Choice, Strict, Text, Truth, Whole
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation.serializers import SessionSerializer, WhatsAppChat
from sessions_app.turns.turn_api import ContextQuestionSerializer

YAML = "yaml"
FORMATS = ("json", YAML)


class ForgetArguments(Strict):
    memory_id = fields.uuid("As remember and recall tell it.")


class ContextArguments(ContextQuestionSerializer):
    session_id = fields.uuid("Of this session.", required=False)
    whatsapp_chat = WhatsAppChat(
        required=False,
        help_text=(
            "Instead of session_id: of this chat's active session. A token that is bound to one "
            "chat needs neither."
        ),
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "session_id" in attrs and "whatsapp_chat" in attrs:
            raise serializers.ValidationError("Give either session_id or whatsapp_chat.")
        return attrs


# Fewer than over REST: each takes a good 80 tokens of the assistant's context.
SESSIONS_ON_A_PAGE = 20


class SessionsArguments(Strict):
    whatsapp_chat = WhatsAppChat(required=False, help_text="Of this chat, by any of its addresses.")
    status = Choice(
        SessionStatus.choices,
        required=False,
        help_text="Archived ones are listed only when asked for.",
    )
    since = Text(
        required=False,
        help_text="Those in which something was said since then, such as 2026-01-31T09:30:00Z.",
    )
    limit = Whole(
        required=False,
        min_value=1,
        max_value=MAX_LIMIT,
        help_text=f"How many a page holds at most; by default {SESSIONS_ON_A_PAGE}.",
    )
    cursor = Text(required=False, help_text="next or previous of the page before, as it is.")


class SessionPage(serializers.Serializer[Any]):
    results = SessionSerializer(many=True)
    next = fields.text("The cursor of the next page; null on the last one.", allow_null=True)
    previous = fields.text("That of the page before.", allow_null=True)


class CardArguments(Strict):
    session_id = serializers.UUIDField()
    format = Choice(FORMATS, required=False, help_text="How the text is written; by default json.")


def document_identifier() -> Text:
    return Text(
        help_text="What it is called, such as use-postgres. In context a date is put before it."
    )


class SaveArguments(Strict):
    category = Choice(CATEGORIES)
    identifier = document_identifier()
    content = serializers.DictField(
        child=serializers.JSONField(allow_null=True),
        help_text=(
            "By its category, all of it optional, other fields are kept. context: decisions, "
            "pending (texts), interfaces, notes. decisions: decision, rationale, status "
            "(accepted, superseded, deprecated), alternatives_considered, constraints (texts). "
            "interfaces: module, types, functions, events. handoffs: task, progress (such as "
            "40%), completed, pending, blockers, next_steps, context_references (texts)."
        ),
    )
    session_id = Text(required=False, allow_blank=True, help_text="The session it comes from.")


class LoadArguments(Strict):
    category = Choice(CATEGORIES)
    identifier = document_identifier()
    archived = Truth(required=False, help_text="The one in the archive, by its name there.")


# JSON Schema (2020-12) of the API's serializers.

Schema = dict[str, Any]
Field = serializers.Field[Any, Any, Any, Any]

KINDS: tuple[tuple[type[Field], Schema], ...] = (
    (serializers.UUIDField, {"type": "string", "format": "uuid"}),
    (serializers.DateTimeField, {"type": "string", "format": "date-time"}),
    (serializers.BooleanField, {"type": "boolean"}),
    (serializers.IntegerField, {"type": "integer"}),
    (serializers.FloatField, {"type": "number"}),
    (serializers.CharField, {"type": "string"}),
    (serializers.DictField, {"type": "object"}),
)
BOUNDS = {
    "string": (("min_length", "minLength"), ("max_length", "maxLength")),
    "array": (("min_length", "minItems"), ("max_length", "maxItems")),
    "integer": (("min_value", "minimum"), ("max_value", "maximum")),
    "number": (("min_value", "minimum"), ("max_value", "maximum")),
}


def schema_of(serializer_class: type[serializers.Serializer[Any]], *examples: Any) -> Schema:
    """Return an object's schema; for a strict serializer it allows no unknown fields."""
    schema = _object(serializer_class())
    return {**schema, "examples": list(examples)} if examples else schema


def _object(field: Field | None) -> Schema:
    serializer: serializers.Serializer[Any] = instance(field, serializers.Serializer)
    fields = serializer.fields
    schema: Schema = {
        "type": "object",
        "properties": {name: _described(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
    }
    return {**schema, "additionalProperties": False} if isinstance(serializer, Strict) else schema


def _described(field: Field) -> Schema:
    schema = _plain(field)
    for attribute, keyword in BOUNDS.get(schema.get("type", ""), ()):
        bound = getattr(field, attribute, None)
        if bound is not None:
            schema[keyword] = bound
    if isinstance(field, Text) and not field.allow_blank:
        schema["minLength"] = 1
    if field.help_text:
        schema["description"] = str(field.help_text)
    if field.default is not serializers.empty:
        schema["default"] = field.default
    return _nullable(schema) if field.allow_null else schema


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


def _nullable(schema: Schema) -> Schema:
    """Allow null, too."""
    nullable = dict(schema)
    if "type" in nullable:
        nullable["type"] = [nullable["type"], "null"]
    if "enum" in nullable:
        nullable["enum"] = [*nullable["enum"], None]
    return nullable
