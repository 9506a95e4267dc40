"""Serializers of replays and of prompt contexts."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Moment, Strict, Text, Whole
from sessions_app.models.turns import TurnState
from sessions_app.presentation.serializers import (
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
    messages = PromptMessageSerializer(many=True)
    memories = serializers.ListField(child=RecalledField())
    total_tokens = serializers.IntegerField(help_text="Of the messages, exactly.")
    left_out = BudgetLeftOutSerializer(help_text="What the budget left out.")


class TurnSerializer(serializers.Serializer[Any]):
    """The replay of one answer; serializes a TurnReplay with its turn and the turn's chat."""

    turn_id = serializers.UUIDField(source="turn.turn_id")
    whatsapp_chat = serializers.CharField(source="turn.chat.whatsapp_chat")
    session_id = serializers.UUIDField(source="turn.session_id", allow_null=True)
    message_id = serializers.UUIDField(source="turn.message_id", allow_null=True)
    reply_message_id = serializers.UUIDField(source="turn.reply_id", allow_null=True)
    summary_message_id = serializers.UUIDField(source="summary_id", allow_null=True)
    state = serializers.ChoiceField(TurnState.choices, source="turn.state")
    user_role = serializers.CharField(source="turn.user_role")
    prompt = PromptMessageSerializer(many=True, help_text="What the model was sent.")
    recalled = serializers.ListField(
        child=RecalledField(), help_text="Memories and messages, with their scores."
    )
    left_out = BudgetLeftOutSerializer(help_text="What the token budget left out.")
    model = serializers.CharField()
    prompt_tokens = serializers.IntegerField(allow_null=True)
    completion_tokens = serializers.IntegerField(allow_null=True)
    timings = serializers.DictField(child=serializers.IntegerField(), help_text="Milliseconds.")
    error = serializers.CharField(source="turn.error")
    attempts = serializers.IntegerField(source="turn.attempts")
    asked_at = Moment(source="turn.asked_at")
    created_at = Moment(source="turn.created_at")
    finished_at = Moment(source="turn.finished_at", allow_null=True)
