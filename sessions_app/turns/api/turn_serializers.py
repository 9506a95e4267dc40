"""Serializers of replays and of prompt contexts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Moment, Strict, Text, Whole
from sessions_app.models.turns import Outcome, TurnState
from sessions_app.presentation.prompt_serializers import (
    ERROR_CODE,
    OUTCOME,
    BudgetLeftOutSerializer,
    PromptMessageSerializer,
    RecalledField,
)


class ContextQuestionSerializer(Strict):
    query = Text(
        required=False,
        allow_blank=True,
        max_length=65_536,
        help_text="What is said now. Default: the session's last message.",
    )
    max_tokens = Whole(
        required=False,
        min_value=1,
        max_value=10_000_000,
        help_text="The messages have at most so many tokens together, by the server's estimate.",
    )


class ContextSerializer(serializers.Serializer[Any]):
    messages = PromptMessageSerializer(many=True, help_text="For a chat model, in this order.")
    memories = serializers.ListField(
        child=RecalledField(),
        help_text="What was recalled, with its scores; in_prompt: it is in the messages.",
    )
    total_tokens = serializers.IntegerField(help_text="Of the messages, exactly.")
    left_out = BudgetLeftOutSerializer(help_text="What the budget left out.")


class TurnSerializer(serializers.Serializer[Any]):
    """The replay of one answer; serializes a TurnReplay with its turn and the turn's chat."""

    turn_id = serializers.UUIDField(
        source="turn.turn_id", help_text="Names the replay in addresses: `turns/{turn_id}/`."
    )
    whatsapp_chat = serializers.CharField(
        source="turn.chat.whatsapp_chat", help_text="The chat, in the stored form of its id."
    )
    session_id = serializers.UUIDField(
        source="turn.session_id",
        allow_null=True,
        help_text="The session of the message; null where memory is off.",
    )
    message_id = serializers.UUIDField(
        source="turn.message_id",
        allow_null=True,
        help_text="The message that was answered; null where it isn't stored, or was deleted.",
    )
    reply_message_id = serializers.UUIDField(
        source="turn.reply_id",
        allow_null=True,
        help_text="The message that holds the answer; null where none is stored.",
    )
    summary_message_id = serializers.UUIDField(
        source="summary_id",
        allow_null=True,
        help_text="The message whose summary is in the prompt; null: none.",
    )
    state = serializers.ChoiceField(TurnState.choices, source="turn.state")
    user_role = serializers.CharField(
        source="turn.user_role", help_text="For whom the answer was made: client or godfather."
    )
    prompt = PromptMessageSerializer(many=True, help_text="What the model was sent.")
    recalled = serializers.ListField(
        child=RecalledField(), help_text="Memories and messages, with their scores."
    )
    left_out = BudgetLeftOutSerializer(help_text="What the token budget left out.")
    model = serializers.CharField(help_text="The chat model that answered; empty where none did.")
    prompt_tokens = serializers.IntegerField(
        allow_null=True, help_text="How many the provider counted in the prompt; null: not known."
    )
    completion_tokens = serializers.IntegerField(
        allow_null=True, help_text="How many the provider counted in the answer; null: not known."
    )
    timings = serializers.DictField(child=serializers.IntegerField(), help_text="Milliseconds.")
    outcome = serializers.ChoiceField(
        Outcome.choices,
        source="turn.ended_as",
        allow_null=True,
        help_text=f"{OUTCOME} null: it waits, or the message has no answer of its own.",
    )
    error_code = serializers.CharField(
        source="turn.error_code", allow_null=True, help_text=ERROR_CODE
    )
    error = serializers.CharField(
        source="turn.error", help_text="Why there is no answer, or it wasn't sent; empty: no error."
    )
    attempts = serializers.IntegerField(
        source="turn.attempts", help_text="How many times a worker began with it."
    )
    asked_at = Moment(source="turn.asked_at", help_text="When the message was written.")
    created_at = Moment(source="turn.created_at", help_text="When the message arrived.")
    finished_at = Moment(
        source="turn.finished_at",
        allow_null=True,
        help_text="When the turn ended; null: it hasn't.",
    )
