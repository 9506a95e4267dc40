"""Messages in OpenAI's form: tool calls, their results, content in parts; and whole prompts."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Choice, Strict, Text
from sessions_app.conversations import message_store
from sessions_app.models.messages import Role

# The sources of the entries of a replay that are memories: recalled, or lines of a person's card.
OF_MEMORIES = ("memory", "person")
MAX_CONTENT = 262_144
MAX_METADATA_BYTES = 16 * 1024
MAX_CALLS = 128
MAX_PARTS = 128
MAX_ID = 255
MAX_NAME = 64
MAX_DEPTH = 20

# Those without a text that can be read.
KNOWN_PARTS = {*message_store.OTHER_PARTS, *message_store.THOUGHT_PARTS}


def _part(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}
PARTS = [
    TEXT,
    _part(type={"type": "string", "minLength": 1, "not": {"enum": ["refusal"]}}, text=TEXT),
    _part(type={"type": "string", "enum": ["refusal"]}, refusal=TEXT),
    _part(type={"type": "string", "enum": sorted(KNOWN_PARTS)}),
]
WHOLE_CONTENT = {
    "oneOf": [
        {"type": "string", "maxLength": MAX_CONTENT},
        {"type": "array", "items": {"anyOf": PARTS}, "minItems": 1, "maxItems": MAX_PARTS},
    ]
}
CONTENT = {**WHOLE_CONTENT, "nullable": True}


# The names that other chat APIs give to the roles.
ROLES = {"developer": Role.SYSTEM, "ai": Role.ASSISTANT, "human": Role.USER}


class RoleField(Choice):
    """A role in OpenAI's names or those of others, read as one of Role."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__([*Role.choices, *((name, name) for name in ROLES)], **kwargs)

    def to_internal_value(self, data: Any) -> str:
        role = super().to_internal_value(data)
        return str(ROLES.get(role, role))


class CalledFunctionSerializer(Strict):
    name = Text(max_length=MAX_NAME)
    arguments = Text(allow_blank=True, max_length=MAX_CONTENT)


class CustomCallSerializer(Strict):
    name = Text(max_length=MAX_NAME)
    input = Text(allow_blank=True, max_length=MAX_CONTENT)


class ToolCallSerializer(Strict):
    """A call of a tool that the assistant asked for."""

    id = Text(max_length=MAX_ID)
    type = serializers.ChoiceField(["function", "custom"])
    function = CalledFunctionSerializer(required=False)
    custom = CustomCallSerializer(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        kind, other = sorted(("function", "custom"), key=lambda name: name != attrs["type"])
        if kind not in attrs or other in attrs:
            refuse_field(kind, f"A call of type {kind} has the field {kind} alone.")
        return attrs


@extend_schema_field(CONTENT)
class Content(serializers.Field[Any, Any, Any, Any]):
    """A text, parts in OpenAI's form, or null beside tool calls."""

    default_error_messages = {
        "form": (
            "It must be a text, null beside tool_calls, or a list of parts such as "
            '{{"type": "text", "text": "Hello"}}.'
        ),
        "length": "It has more than {most} characters.",
        "parts": "It must have 1 to {most} parts.",
        "part": (
            "Part {place} must be a text, or an object with a `type` and a `text`; of other types "
            "there are refusal, {others}. Calls of tools and their results are fields of a message."
        ),
        "depth": "It is nested too deeply.",
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_null": True, **kwargs})

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            size = len(data)
        elif isinstance(data, list):
            data = [
                {"type": "text", "text": each} if isinstance(each, str) else each for each in data
            ]
            self._check_parts(data)
            size = message_store.form_size(data)
        else:
            self.fail("form")
        if size > MAX_CONTENT:
            self.fail("length", most=f"{MAX_CONTENT:,}")
        return data

    def _check_parts(self, parts: list[Any]) -> None:
        if not 1 <= len(parts) <= MAX_PARTS:
            self.fail("parts", most=MAX_PARTS)
        for place, part in enumerate(parts):
            kind = part.get("type") if isinstance(part, dict) else None
            is_known = isinstance(kind, str) and kind in KNOWN_PARTS
            if (
                not isinstance(kind, str)
                or not kind
                or not (is_known or message_store.part_text(part) is not None)
            ):
                self.fail("part", place=place, others=", ".join(sorted(KNOWN_PARTS)))
        if depth_of(parts) > MAX_DEPTH:
            self.fail("depth")

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(WHOLE_CONTENT)
class WholeContent(Content):
    """Content that isn't null."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_null=False, **kwargs)


def depth_of(value: Any) -> int:
    """Return how many lists and objects stand within each other."""
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
    return depth


def check_form(message: Mapping[str, Any]) -> None:
    """Refuse calls and results of tools that stand at a message of another role."""
    if message.get("tool_calls") and message["role"] != Role.ASSISTANT:
        refuse_field("tool_calls", "Only an assistant's message has tool_calls.")
    if message.get("tool_call_id") and message["role"] != Role.TOOL:
        refuse_field("tool_call_id", "Only a tool's message has a tool_call_id.")
    ids = [call["id"] for call in message.get("tool_calls") or ()]
    if len(set(ids)) < len(ids):
        refuse_field("tool_calls", "Two of the calls have the same id.")
    if message.get("content") is None and not ids:
        refuse_field("content", "It may only be null beside tool_calls.")


def refuse_field(name: str, detail: str) -> None:
    raise serializers.ValidationError({name: [detail]}, code="invalid")


def stored_form(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are stored of a message in OpenAI's form."""
    given = dict(message)
    content = given.pop("content", None)
    form = message_store.ChatForm(
        tool_calls=given.pop("tool_calls", None) or (),
        tool_call_id=given.pop("tool_call_id", None) or "",
        name=given.pop("name", None) or "",
        parts=content if isinstance(content, list) else None,
    )
    text = message_store.text_of_parts(content) if isinstance(content, list) else content or ""
    metadata = form.stored_in(given.pop("metadata", {}))
    return {**given, "content": text, "metadata": metadata}


class RecalledField(serializers.DictField):
    """An entry of a replay record, with the API's field names.

    It has memory_id or message_id, and times with Z. A card, and a line of one, is identified by
    its session_id. A line of what is known of the person has its section.
    """

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        recalled = {**value, "created_at": value["created_at"].replace("+00:00", "Z")}
        object_id = recalled.pop("id")
        if value["source"] == "message":
            recalled = {"message_id": object_id, **recalled}
        elif value["source"] in OF_MEMORIES:
            recalled = {"memory_id": object_id, **recalled}
        return dict(super().to_representation(recalled))


class PromptMessageSerializer(serializers.Serializer[Any]):
    """A message as chat APIs take it."""

    role = serializers.CharField()
    content = serializers.CharField(allow_null=True)
    tool_calls = ToolCallSerializer(many=True, required=False)
    tool_call_id = serializers.CharField(required=False)
    name = serializers.CharField(required=False)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return what the fields say, without asking each of them: a prompt has many messages."""
        if "tool_calls" in instance:
            return dict(super().to_representation(instance))
        return {name: instance[name] for name in map(str, self.fields) if name in instance}


class BudgetLeftOutSerializer(serializers.Serializer[Any]):
    """The texts that did not fit into a prompt. Empty where no model was asked."""

    messages_until = serializers.IntegerField(required=False)
    messages_over_context = serializers.IntegerField(required=False)
    recalled = serializers.IntegerField(required=False)
    messages_cut = serializers.IntegerField(required=False)
    recalled_cut = serializers.IntegerField(required=False)
    profile_cut = serializers.IntegerField(required=False)
    recall_degraded = serializers.BooleanField(required=False)
    answer_cut = serializers.BooleanField(required=False)
    passage = serializers.CharField(required=False)
    summarized_until = serializers.IntegerField(required=False)
    refused_prompts = serializers.IntegerField(required=False)
