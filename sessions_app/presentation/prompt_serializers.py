"""Serialize what is put into a prompt, and what is left out of it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from sessions_app.presentation.message_forms import ToolCallSerializer

OUTCOME = (
    "answered; from_memory: no model answered, the reply is made of what is remembered; refused: a "
    "limit, a block, WhatsApp's window or a switched-off memory forbids an answer; failed: the "
    "reply is an apology, or nothing could be sent."
)
ERROR_CODE = "Names the error that left the message without a proper answer; null: none."


class RecalledField(serializers.DictField):
    """An entry of a replay record, with the API's field names.

    It has memory_id or message_id, and times with Z. A card is identified by its session_id.
    """

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        recalled = {**value, "created_at": value["created_at"].replace("+00:00", "Z")}
        object_id = recalled.pop("id")
        if value["source"] in ("memory", "message"):
            recalled = {f"{value['source']}_id": object_id, **recalled}
        return dict(super().to_representation(recalled))


class PromptMessageSerializer(serializers.Serializer[Any]):
    """A message as chat APIs take it."""

    role = serializers.CharField(help_text="system, user, assistant or tool.")
    content = serializers.CharField(
        allow_null=True, help_text="null: the assistant only calls tools."
    )
    tool_calls = ToolCallSerializer(
        many=True,
        required=False,
        help_text="Only of an assistant's message: the tools that it calls.",
    )
    tool_call_id = serializers.CharField(
        required=False, help_text="Only of a tool's message: the id of the call whose result it is."
    )
    name = serializers.CharField(
        required=False, help_text="The writer's name; absent where none was given."
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return what the fields say, without asking each of them: a prompt has many messages."""
        if "tool_calls" in instance:
            return dict(super().to_representation(instance))
        return {name: instance[name] for name in map(str, self.fields) if name in instance}


class BudgetLeftOutSerializer(serializers.Serializer[Any]):
    """The texts that did not fit into a prompt. Empty where no model was asked."""

    messages_until = serializers.IntegerField(
        required=False,
        help_text=(
            "Messages up to this order_num are not in the prompt, except in the summary and the "
            "passage: they exceed the history's limit. 0: none."
        ),
    )
    messages_over_context = serializers.IntegerField(
        required=False,
        help_text="How many of the messages after them did not fit beside what was recalled.",
    )
    recalled = serializers.IntegerField(
        required=False, help_text="How many recalled texts did not fit."
    )
    messages_cut = serializers.IntegerField(
        required=False, help_text="How many messages are in the prompt shortened."
    )
    recalled_cut = serializers.IntegerField(
        required=False, help_text="How many recalled texts are in the prompt shortened."
    )
    profile_cut = serializers.IntegerField(
        required=False, help_text="How many texts of the assistant's profile are shortened."
    )
    recall_degraded = serializers.BooleanField(
        required=False, help_text="A part of memory could not be searched."
    )
    passage = serializers.CharField(
        required=False,
        help_text=(
            "The messages between the summary and the history, shortened, as the system text has "
            "them. Empty: there are none."
        ),
    )
    summarized_until = serializers.IntegerField(
        required=False,
        help_text="The summary covers messages up to this order_num. 0: there is none.",
    )
    refused_prompts = serializers.IntegerField(
        required=False, help_text="How many longer prompts the model refused before this one."
    )
