"""Serialize conversations as JSON."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memoryproject.foundation.rest_kit.serializers import Moment, Strict, Text, utc_text
from sessions_app.conversations.facade import MAX_MESSAGES
from sessions_app.models import Chat, ForgottenKind
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus

MAX_ADDRESS_LENGTH = 255

# No white space, no control characters, nothing invisible. In the syntax of JSON Schema.
ADDRESS = re.compile(
    r"^[^\u0000-\u0020\u007f-\u00a0\u00ad\u1680\u180e\u2000-\u200f\u2028-\u202f"
    r"\u205f-\u206f\u3000\ufeff]+$"
)


@extend_schema_field(
    {"type": "string", "minLength": 1, "maxLength": MAX_ADDRESS_LENGTH, "pattern": ADDRESS.pattern}
)
class WhatsAppChat(Text):
    """The WhatsApp chat, such as 15550100123@c.us, …@g.us or …@bsuid.

    Another form is accepted with a WARNING, too (ERR-SESSION-007).
    """

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", MAX_ADDRESS_LENGTH)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not ADDRESS.fullmatch(text):
            raise serializers.ValidationError("Write it like 15550100123@c.us, without spaces.")
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
    received_at = Moment(help_text="When it was stored here.")
    was_received = serializers.BooleanField(
        help_text="False while a reply sent by WhatsApp hasn't reached its recipient."
    )
    sender = serializers.CharField()
    recipient = serializers.CharField()
    tokens = serializers.IntegerField()
    image_path = serializers.CharField(allow_null=True)
    metadata = serializers.DictField(child=serializers.JSONField())

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return what the fields say, without asking each of them: a page has 1,000 messages.

        ``instance``: a Message, or anything with its attributes.
        """
        return {
            "message_id": str(instance.message_id),
            "session_id": str(instance.session_id),
            "order_num": instance.order_num,
            "role": str(instance.role),
            "content": instance.content,
            "timestamp": utc_text(instance.timestamp),
            "received_at": utc_text(instance.received_at),
            "was_received": instance.was_received,
            "sender": instance.sender,
            "recipient": instance.recipient,
            "tokens": instance.tokens,
            "image_path": instance.image_path,
            "metadata": instance.metadata,
        }


class NewMessageSerializer(Strict):
    role = serializers.ChoiceField(Role.choices)
    content = Text(allow_blank=True, help_text="Kept byte for byte; it may be empty.")
    timestamp = Moment(required=False, help_text="Default: now.")
    metadata = serializers.DictField(child=serializers.JSONField(allow_null=True), required=False)
    sender = Text(required=False, allow_blank=True, max_length=MAX_ADDRESS_LENGTH)
    recipient = Text(required=False, allow_blank=True, max_length=MAX_ADDRESS_LENGTH)


class NewMessagesSerializer(Strict):
    messages = serializers.ListField(child=NewMessageSerializer(), max_length=MAX_MESSAGES)


class StoredMessagesSerializer(serializers.Serializer[Any]):
    messages = MessageSerializer(many=True)


class MessagesQuery(Strict):
    """``limit`` and ``cursor`` are those of all pages."""

    before = Moment(
        required=False, help_text="Only messages with an earlier timestamp, such as …T09:30:00Z."
    )


class ReceiptSerializer(serializers.Serializer[Any]):
    """The receipt of a forgetting."""

    receipt_id = serializers.UUIDField()
    kind = serializers.ChoiceField(ForgottenKind.choices)
    object_id = serializers.UUIDField()
    forgotten_at = Moment()
    swept = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many rows of which table."
    )
    probe = serializers.CharField(help_text="absent: it was looked for and not found.")
    probe_details = serializers.DictField(
        child=serializers.DictField(),
        help_text=(
            "What the probe did, by where it looked: queries, rows examined, and the columns, "
            "indexes and statistics looked_at. Empty for older receipts."
        ),
    )


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
    role = serializers.CharField()
    content = serializers.CharField()


class ChatSerializer(serializers.Serializer[Any]):
    whatsapp_chat = serializers.CharField()
    object_id = serializers.UUIDField(
        source="id", help_text="By which receipts and the audit log name it."
    )
    addresses = serializers.SerializerMethodField(help_text="By which it is known now.")
    is_group = serializers.BooleanField()
    client_name = serializers.CharField()
    client_phone = serializers.CharField(help_text="Empty where it isn't known.")
    language = serializers.CharField()
    memory_enabled = serializers.BooleanField(
        allow_null=True, help_text="Null: as ENABLE_MEMORY_SYSTEM says."
    )
    created_at = Moment()

    def get_addresses(self, chat: Chat) -> list[str]:
        """Return the addresses that the view's queryset prefetched with the chats."""
        current = {link.address for link in chat.addresses.all() if link.left_at is None}
        return sorted(current)
