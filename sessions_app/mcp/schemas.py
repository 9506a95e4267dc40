"""JSON Schema (2020-12) of the API's serializers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.process.narrowing import instance
from memoryproject.foundation.rest_kit.serializers import Strict, Text

Schema = dict[str, Any]
Field = serializers.Field[Any, Any, Any, Any]

FORMATS: tuple[tuple[type[Field], Schema], ...] = (
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
    for kind, schema in FORMATS:
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
