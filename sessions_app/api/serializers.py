"""Conversations as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from memoryproject.api.serializers import Moment, Strict, Text
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus

LONGEST_ADDRESS = 255


class WhatsAppChat(Text):
    """Who is talked to, in the form 15550100123@c.us, …@g.us or …@bsuid."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", LONGEST_ADDRESS)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        name, _, domain = text.partition("@")
        if not name or not domain or not text.isprintable() or any(map(str.isspace, text)):
            raise serializers.ValidationError("Write it like 15550100123@c.us.")
        return text


class SessionSerializer(serializers.Serializer[Any]):
    session_id = serializers.UUIDField()
    whatsapp_chat = serializers.CharField()
    status = serializers.ChoiceField(SessionStatus.choices)
    created_at = Moment()
    last_active = Moment(help_text="When the last message was stored.")
    expired_at = Moment(allow_null=True)
    message_counter = serializers.IntegerField(help_text="The last order_num given.")
    total_tokens = serializers.IntegerField(help_text="Of the messages within the window.")


class NewSessionSerializer(Strict):
    whatsapp_chat = WhatsAppChat()


class MessageSerializer(serializers.Serializer[Any]):
    """A stored message."""

    message_id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    order_num = serializers.IntegerField(help_text="Its place in the session, from 1.")
    role = serializers.ChoiceField(Role.choices)
    content = serializers.CharField(help_text="As it was given, byte for byte.")
    timestamp = Moment()
    sender = serializers.CharField()
    recipient = serializers.CharField()
    tokens = serializers.IntegerField()
    image_path = serializers.CharField(allow_null=True)
    metadata = serializers.DictField(child=serializers.JSONField())
