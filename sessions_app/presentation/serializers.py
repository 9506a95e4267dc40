"""Serialize conversations as JSON."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memoryproject.foundation.integrations.whatsapp import whatsapp_chats
from memoryproject.foundation.rest_kit import fields, serializers as kit
from memoryproject.foundation.text.uuids import iso_utc
from sessions_app.conversations.message_store import (
    FORM,
    MAX_MESSAGES,
    chat_form,
    form_size,
    own_metadata,
)
from sessions_app.models import ChatSession, ForgottenKind
from sessions_app.models.chats import CLIENT, GODFATHER, chat_role
from sessions_app.models.messages import Role
from sessions_app.models.sessions import SessionStatus
from sessions_app.presentation import message_forms
from sessions_app.presentation.access import WHATSAPP_CHAT_SCHEMA

MAX_ADDRESS_LENGTH = whatsapp_chats.MAX_WHATSAPP_CHAT


@extend_schema_field(WHATSAPP_CHAT_SCHEMA)
class WhatsAppChat(kit.Text):
    """The chat, such as 15550100123@c.us, …@g.us, …@bsuid or …@external; in its stored form.

    Other spellings of the same id are accepted; another text is refused.
    """

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", MAX_ADDRESS_LENGTH)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        try:
            return whatsapp_chats.whatsapp_chat_normalise(super().to_internal_value(data))
        except whatsapp_chats.WhatsAppChatError as error:
            raise serializers.ValidationError(str(error)) from error


class SessionSerializer(serializers.Serializer[Any]):
    session_id = serializers.UUIDField()
    whatsapp_chat = serializers.CharField()
    status = serializers.ChoiceField(SessionStatus.choices)
    created_at = kit.Moment()
    last_active = kit.Moment()
    expired_at = kit.Moment(allow_null=True)
    message_counter = serializers.IntegerField()
    total_tokens = serializers.IntegerField()
    client_name = serializers.CharField(source="chat.client_name")
    client_phone = serializers.CharField(source="chat.client_phone")
    user_role = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ChoiceField([CLIENT, GODFATHER]))
    def get_user_role(self, session: ChatSession) -> str:
        """Return the role by the chat's addresses, with which lists annotate their sessions."""
        addresses = getattr(session, "current_addresses", None)
        return chat_role(session.chat, godfather=settings.GODFATHER_PHONE, addresses=addresses)


class NewSessionSerializer(kit.Strict):
    whatsapp_chat = WhatsAppChat(required=False)


def media_shown(media: dict[str, str]) -> dict[str, str]:
    """Leave the provider's link out: who has it may fetch the file without any token."""
    return {name: value for name, value in media.items() if name != "url"}


class MediaField(serializers.DictField):
    def to_representation(self, value: dict[str, str]) -> dict[str, str]:
        return media_shown(value)


class MessageSerializer(serializers.Serializer[Any]):
    """A stored message."""

    message_id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    order_num = serializers.IntegerField()
    role = serializers.ChoiceField(Role.choices)
    content = serializers.CharField()
    timestamp = kit.Moment()
    received_at = kit.Moment()
    was_received = serializers.BooleanField()
    sender = serializers.CharField()
    recipient = serializers.CharField()
    tokens = serializers.IntegerField()
    image_path = serializers.CharField(allow_null=True)
    metadata = fields.json_object()
    kind = serializers.CharField()
    media = MediaField(child=serializers.CharField())
    tool_calls = message_forms.ToolCallSerializer(many=True, read_only=True)
    tool_call_id = serializers.CharField(read_only=True, allow_null=True)
    name = serializers.CharField(read_only=True, allow_null=True)
    content_parts = serializers.ListField(
        child=serializers.DictField(), read_only=True, allow_null=True
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Return what the fields say, without asking each of them: a page has 1,000 messages.

        ``instance``: a Message, or anything with its attributes.
        """
        form = chat_form(instance.metadata)
        return {
            "message_id": str(instance.message_id),
            "session_id": str(instance.session_id),
            "order_num": instance.order_num,
            "role": str(instance.role),
            "content": instance.content,
            "timestamp": iso_utc(instance.timestamp),
            "received_at": iso_utc(instance.received_at),
            "was_received": instance.was_received,
            "sender": instance.sender,
            "recipient": instance.recipient,
            "tokens": instance.tokens,
            "image_path": instance.image_path,
            "metadata": own_metadata(instance.metadata),
            "kind": instance.kind,
            "media": media_shown(instance.media),
            "tool_calls": list(form.tool_calls),
            "tool_call_id": form.tool_call_id or None,
            "name": form.name or None,
            "content_parts": form.parts,
        }


# Fields of a message that are read from its metadata.
OF_ITS_FORM = ("tool_calls", "tool_call_id", "name", "content_parts")


MAX_MODEL = 128
# Of an assistant's message, as OpenAI's client writes it.
ALWAYS_SENT = frozenset(["annotations", "audio", "function_call"])


class NewMessageSerializer(kit.Strict):
    role = message_forms.RoleField()
    content = message_forms.Content(required=False)
    timestamp = kit.StoredMoment(required=False)
    metadata = kit.Object(
        required=False,
        help_text=f"Any JSON object, at most {message_forms.MAX_METADATA_BYTES:,} bytes.",
    )
    sender = kit.Text(required=False, allow_blank=True, max_length=MAX_ADDRESS_LENGTH)
    recipient = kit.Text(required=False, allow_blank=True, max_length=MAX_ADDRESS_LENGTH)
    tool_calls = kit.Items(
        child=message_forms.ToolCallSerializer(),
        required=False,
        allow_null=True,
        max_length=message_forms.MAX_CALLS,
    )
    tool_call_id = kit.Text(required=False, allow_null=True, max_length=message_forms.MAX_ID)
    name = kit.Text(required=False, allow_null=True, max_length=message_forms.MAX_NAME)

    refusal = kit.Text(
        required=False, allow_null=True, allow_blank=True, max_length=message_forms.MAX_CONTENT
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Leave out the fields that clients send with every message, where they are empty."""
        if isinstance(data, Mapping):
            data = {k: v for k, v in data.items() if v or k not in ALWAYS_SENT}
        return dict(super().to_internal_value(data))

    def validate_metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if FORM in metadata:
            raise serializers.ValidationError(f"The name {FORM} is taken by the server.")
        if form_size(metadata) > message_forms.MAX_METADATA_BYTES:
            raise serializers.ValidationError(
                f"It has more than {message_forms.MAX_METADATA_BYTES:,} bytes."
            )
        return metadata

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        refusal = attrs.pop("refusal", None)
        if refusal and attrs.get("content") is None:
            attrs["content"] = refusal
        if "content" not in attrs and not attrs.get("tool_calls"):
            raise serializers.ValidationError({"content": "This field is required."}, "required")
        message_forms.check_form(attrs)
        return attrs


class NewMessagesSerializer(kit.Strict):
    messages = kit.Items(child=NewMessageSerializer(), min_length=1, max_length=MAX_MESSAGES)
    learn = kit.Truth(default=False)


class NewExchangeSerializer(kit.Strict):
    """What a person said, and what your own model answered."""

    query = message_forms.WholeContent()
    reply = message_forms.WholeContent()
    model = kit.Text(required=False, allow_blank=True, max_length=MAX_MODEL)
    timestamp = kit.StoredMoment(required=False)
    learn = kit.Truth(default=False)


class StoredMessagesSerializer(serializers.Serializer[Any]):
    messages = MessageSerializer(many=True)
    learning = serializers.ChoiceField(["queued", "off", "nothing"])


class StoredExchangeSerializer(StoredMessagesSerializer):
    turn_id = serializers.UUIDField()


class MessagesQuery(kit.Strict):
    """``limit`` and ``cursor`` are those of all pages."""

    before = kit.Moment(required=False)


class ReceiptSerializer(serializers.Serializer[Any]):
    """The receipt of a forgetting."""

    receipt_id = serializers.UUIDField()
    kind = serializers.ChoiceField(ForgottenKind.choices)
    object_id = serializers.UUIDField()
    forgotten_at = kit.Moment()
    swept = serializers.DictField(child=serializers.IntegerField())
    probe = serializers.CharField()
    probe_details = serializers.DictField(child=serializers.DictField())
    left = serializers.ListField(
        child=serializers.DictField(child=serializers.CharField()), source="still_there"
    )
